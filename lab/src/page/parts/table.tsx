/** A table that scrolls sideways if it is wider than its container. */

import type { ComponentChildren, JSX } from "preact";

export function Table(props: {
  readonly label: string;
  readonly class?: string;
  readonly caption?: ComponentChildren;
  readonly columns: readonly ComponentChildren[];
  /** The rows. */
  readonly children: ComponentChildren;
  /** Content below the table, such as a note that rows were omitted. */
  readonly below?: ComponentChildren;
}): JSX.Element {
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={props.label}>
      <table class={props.class}>
        {props.caption !== undefined && (
          <caption>
            <span>{props.caption}</span>
          </caption>
        )}
        <thead>
          <tr>
            {props.columns.map((column, i) => (
              <th key={i} scope="col">
                {column}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{props.children}</tbody>
      </table>
      {props.below}
    </div>
  );
}
