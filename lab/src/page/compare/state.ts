/** The compared settings. */

import { signal } from "@preact/signals";
import { MOST_SETTINGS } from "../link/link.ts";
import { Experiment, type Setting } from "../parts/experiment.ts";

export interface Compared extends Setting {
  readonly id: number;
}

export const compared = signal<readonly Compared[]>([]);
export const experiment = new Experiment();

let last = 0;

export function add(setting: Setting): void {
  if (compared.value.length < MOST_SETTINGS) {
    last += 1;
    compared.value = [...compared.value, { ...setting, name: free(setting.name), id: last }];
  }
}

/** Replaces the compared settings with the settings from a link. */
export function replace(settings: readonly Setting[]): void {
  experiment.stop();
  compared.value = [];
  settings.forEach(add);
}

let isBegun = false;

/** On the first visit, calls `begin`, unless a link or the user has already added scenarios. */
export function beginOnce(begin: () => void): void {
  if (!isBegun && compared.peek().length === 0) {
    begin();
  }
  isBegun = true;
}

export function dropAll(): void {
  experiment.stop();
  compared.value = [];
}

export function change(id: number, by: Partial<Setting>): void {
  compared.value = compared.value.map((s) => (s.id === id ? { ...s, ...by } : s));
}

export function drop(id: number): void {
  compared.value = compared.value.filter((s) => s.id !== id);
}

/** Returns a unique name, by adding a number if the name already exists. */
function free(name: string): string {
  const names = new Set(compared.value.map((s) => s.name));
  if (!names.has(name)) {
    return name;
  }
  let n = 2;
  while (names.has(`${name} (${String(n)})`)) {
    n += 1;
  }
  return `${name} (${String(n)})`;
}
