/** The stories, in the order shown in the overview. */

import { clock } from "./clock.ts";
import { double } from "./double.ts";
import { edge } from "./edge.ts";
import { far } from "./far.ts";
import { oneCell } from "./one-cell.ts";
import { own } from "./own.ts";
import { share } from "./share.ts";
import type { Story } from "./story.ts";
import { tie } from "./tie.ts";

export const STORIES: readonly Story[] = [oneCell, tie, share, clock, double, far, edge, own];
