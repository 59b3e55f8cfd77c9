// A page of the documentation.
import { useEffect, useRef } from "preact/hooks";
import { WithData } from "./data";
import { Markdown } from "./markdown";
import { formatHash } from "./route";

export function About({ name, repository }: { name: string; repository: string }) {
  const [page = "", anchor = ""] = name.split("#");
  const article = useRef<HTMLElement>(null);
  useEffect(() => {
    if (anchor) article.current?.querySelector(`[id="${CSS.escape(anchor)}"]`)?.scrollIntoView();
    else scrollTo(0, 0);
  }, [name]);
  return (
    <WithData name="pages" loading="Loading the page">
      {(pages) => {
        const text = Object.hasOwn(pages, page) ? pages[page]! : null;
        if (text === null) return <p role="alert">There is no page {page || "without a name"}.</p>;
        const link = (target: string) => {
          if (/^https?:/.test(target)) return target;
          const { pathname, hash } = new URL(target, `https://docs/docs/${page === "cite" ? "how-to" : "explanation"}/${page}.md`);
          const other = pathname.split("/").pop()!.replace(/\.md$/, "");
          if (Object.hasOwn(pages, other)) return formatHash("about", other + hash);
          return `${repository}/blob/main${pathname}${hash}`;
        };
        return (
          <article class="about" ref={article}>
            <Markdown text={text} link={link} />
          </article>
        );
      }}
    </WithData>
  );
}
