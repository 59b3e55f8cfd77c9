import { Component, type ComponentChildren } from "preact";
import { formatError } from "./format";

interface Props {
  hash: string;
  children: ComponentChildren;
}

/** Catches an error of rendering and shows it in place of the content, until the address changes. */
export class Boundary extends Component<Props, { problem: string; hash: string }> {
  override componentDidCatch(error: unknown): void {
    this.setState({ problem: formatError(error), hash: this.props.hash });
  }

  override render({ hash, children }: Props) {
    if (this.state.hash !== hash) return children;
    return <p role="alert">This cannot be shown: {this.state.problem}</p>;
  }
}
