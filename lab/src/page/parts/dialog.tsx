/** A button and the dialog that it opens: a heading, a close button and the content. */

import type { ComponentChildren, JSX } from "preact";
import { useId, useRef } from "preact/hooks";

export function Dialog(props: {
  /** Content of the button that opens the dialog. */
  readonly press: ComponentChildren;
  readonly title: string;
  readonly class: string;
  readonly onOpen?: () => void;
  /** Content of the dialog; it can call `close`. */
  readonly children: (close: () => void) => ComponentChildren;
}): JSX.Element {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  const close = (): void => {
    dialog.current?.close();
  };
  return (
    <>
      <button
        type="button"
        onClick={() => {
          dialog.current?.showModal();
          props.onOpen?.();
        }}
      >
        {props.press}
      </button>
      <dialog ref={dialog} class={props.class} aria-labelledby={id}>
        <div class="row">
          <h2 id={id}>{props.title}</h2>
          <button type="button" class="quiet row-end" onClick={close}>
            Close
          </button>
        </div>
        {props.children(close)}
      </dialog>
    </>
  );
}
