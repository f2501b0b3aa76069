/** A table that scrolls sideways by itself where it is wider than its place. */

import type { ComponentChildren, JSX } from "preact";

export function Table(props: {
  readonly label: string;
  readonly class?: string;
  readonly caption?: string;
  readonly columns: readonly ComponentChildren[];
  /** The rows. */
  readonly children: ComponentChildren;
  /** What stands below it, such as that there are more rows. */
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
