/** Why the scenario on the bench cannot be run yet, where the user can allow it. */

import type { JSX } from "preact";
import { FaultNotice, Raise } from "../parts/fault.tsx";
import { shortened } from "../parts/format.ts";
import { Notice } from "../parts/parts.tsx";
import { checkFault, checkedNow, toml } from "../state.ts";

/** That the check took too long, or that the scenario needs more memory than it is allowed. */
export function Unchecked(): JSX.Element | null {
  const failed = checkFault.value;
  if (failed !== null && failed.toml === toml.value) {
    // A raised limit is reason enough to check again.
    return <FaultNotice fault={failed.fault} onAgain={() => undefined} />;
  }
  const result = checkedNow.value?.result;
  if (result?.does_not_fit !== true) {
    return null;
  }
  const fault = result.faults.find((f) => f.problem.includes("does not fit"));
  return (
    <Notice sort="bad">
      <p>
        It needs more memory than it is allowed: <code>{shortened(fault?.key ?? "", 200)}</code> {fault?.problem ?? ""}.
      </p>
      <Raise kind="too_large" />
    </Notice>
  );
}
