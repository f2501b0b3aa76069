/** If raising a limit may help, explains why the current scenario cannot be run yet. */

import type { JSX } from "preact";
import { FaultNotice, Raise } from "../parts/fault.tsx";
import { shortened } from "../parts/format.ts";
import { Notice } from "../parts/parts.tsx";
import { checkFault, checkedNow, toml } from "../state.ts";

/** Shows that the check took too long, or that the scenario exceeds the memory limit. */
export function Unchecked(): JSX.Element | null {
  const failed = checkFault.value;
  if (failed !== null && failed.toml === toml.value) {
    // Raising the limit triggers another check.
    return <FaultNotice fault={failed.fault} onAgain={() => undefined} />;
  }
  const result = checkedNow.value?.result;
  if (result?.does_not_fit !== true) {
    return null;
  }
  const fault = result.faults.find((f) => /does not fit|too large/.test(f.problem));
  return (
    <Notice sort="bad">
      <p>
        This scenario needs more memory than the limit allows: <code>{shortened(fault?.key ?? "", 200)}</code> {fault?.problem ?? ""}.
      </p>
      <Raise kind="too_large" />
    </Notice>
  );
}
