// A text to copy.
import { useState } from "preact/hooks";

/** A text that is copied at once where the browser allows it, and can be copied by hand elsewhere. */
export function Copied({ label, text }: { label: string; text: string }) {
  const [copied, setCopied] = useState(false);
  const copy = (area: HTMLTextAreaElement | null) => {
    if (!area || copied) return;
    area.select();
    const clipboard = navigator.clipboard as Clipboard | undefined; // none on a page opened from disk
    clipboard?.writeText(text).then(() => setCopied(true), () => undefined);
  };
  return (
    <p>
      <textarea ref={copy} readOnly aria-label={label} rows={Math.min(16, text.split("\n").length + 1)} value={text} />
      <small role="status">{copied ? `${label} copied.` : "Select and copy."}</small>
    </p>
  );
}
