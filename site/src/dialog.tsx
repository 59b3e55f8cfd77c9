// A panel over the page that keeps the focus, and closes with Escape, its button or a click outside.
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";

export function Dialog({ onClose, children }: { onClose: () => void; children: ComponentChildren }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const element = dialog.current!;
    element.showModal();
    return () => element.close();
  }, []);
  const close = (event?: Event) => {
    event?.preventDefault();
    dialog.current?.close(); // before the address changes, so that the focus returns to the figure
    onClose();
  };
  const closeOutside = (event: MouseEvent) => event.target === dialog.current && close();
  return (
    <dialog ref={dialog} class="panel" aria-labelledby="panel-title" onCancel={close} onClick={closeOutside}>
      <div class="panel-inside">
        <button class="quiet close" onClick={() => close()} aria-label="Close">
          ×
        </button>
        {children}
      </div>
    </dialog>
  );
}
