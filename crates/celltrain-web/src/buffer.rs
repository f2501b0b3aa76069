//! Converts the history of a buffer to JSON and columns.

use celltrain_run::buffer::{History, Refusals, STEPS, SharedMemory};
use serde_json::{Value, json};

use crate::answer::Columns;

/// Creates the JSON of a table, whose fields with numbers or words become columns of the same names.
macro_rules! put {
    ($columns:ident, $table:ident: $($name:ident)*; $($words:ident)*) => {
        json!({
            $(stringify!($name): $columns.put($table.$name),)*
            $(stringify!($words): $columns.put_words(&$table.$words),)*
        })
    };
}

/// Converts the history of a buffer. The columns keep the names of the fields.
pub(crate) fn json(history: History, columns: &mut Columns) -> Value {
    let History { port, capacity, vcs, sent_before, cells, frames, judgements, steps, ports, memory, cut_short } =
        history;
    let cells = put!(columns, cells: vc frame index last from until;);
    let mut frames = put!(columns, frames: vc number arrived_s damaged_s damaged_at sequence length; fate);
    frames["damaged_at"] = json!({"at": frames["damaged_at"], "words": ports});
    let judgements = put!(columns, judgements: frame time_s admitted occupancy vc_cells active_vcs threshold_cells
        share_cells held_cells drop_probability tagged; reason);
    let steps = put!(columns, steps: time_s kind cell vc frame occupancy judgement refusal;);
    let memory = memory.map(|SharedMemory { name, cells, queues, steps, held, most, refusals }| {
        json!({
            "name": name,
            "cells": cells,
            "queues": queues,
            "steps": columns.put(steps),
            "held": columns.put(held),
            "most": columns.put(most),
            "refusals": of_refusals(refusals, columns),
        })
    });
    json!({
        "port": port,
        "capacity": capacity,
        "vcs": vcs,
        "sent_before": columns.put(sent_before),
        "kinds": STEPS,
        "cells": cells,
        "frames": frames,
        "judgements": judgements,
        "steps": steps,
        "memory": memory,
        "cut_short": cut_short,
    })
}

fn of_refusals(refusals: Refusals, columns: &mut Columns) -> Value {
    let (queues, pools) = (refusals.queues.clone(), refusals.pools.clone());
    let mut json = put!(columns, refusals: queue used pool_cells shared threshold; reason);
    json["queues"] = queues.into();
    json["pools"] = pools.into();
    json
}
