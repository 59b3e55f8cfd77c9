import { Component, type ComponentChildren } from "preact";

interface Props {
  at: string;
  children: ComponentChildren;
}

/** What cannot be drawn at an address says so there, and the page lives on: the next address is drawn anew. */
export class Boundary extends Component<Props, { why: string; at: string }> {
  override componentDidCatch(error: unknown): void {
    this.setState({ why: error instanceof Error ? error.message : String(error), at: this.props.at });
  }

  override render({ at, children }: Props) {
    if (this.state.at !== at) return children;
    return <p role="alert">This cannot be shown: {this.state.why}</p>;
  }
}
