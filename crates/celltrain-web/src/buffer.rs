//! The history of a buffer as JSON and columns.

use celltrain_run::buffer::{Cells, Frames, History, Judgements, STEPS, Steps};
use serde_json::{Value, json};

use crate::answer::Columns;

/// Converts a history; the columns keep their names.
pub(crate) fn json(history: History, columns: &mut Columns) -> Value {
    let History { port, capacity, vcs, cells, frames, judgements, steps, ports, cut_short } = history;
    let Cells { vc, frame, index, last, from, until } = cells;
    let cells = json!({
        "vc": columns.put(vc),
        "frame": columns.put(frame),
        "index": columns.put(index),
        "last": columns.put(last),
        "from": columns.put(from),
        "until": columns.put(until),
    });
    let Frames { vc, number, arrived_s, damaged_s, damaged_at, fate, sequence, length } = frames;
    let frames = json!({
        "vc": columns.put(vc),
        "number": columns.put(number),
        "arrived_s": columns.put(arrived_s),
        "damaged_s": columns.put(damaged_s),
        "damaged_at": {"at": columns.put(damaged_at), "words": ports},
        "fate": columns.put_words(&fate),
        "sequence": columns.put(sequence),
        "length": columns.put(length),
    });
    let judgements = {
        let Judgements {
            frame,
            time_s,
            admitted,
            reason,
            occupancy,
            vc_cells,
            active_vcs,
            threshold_cells,
            share_cells,
            held_cells,
            drop_probability,
            tagged,
        } = judgements;
        json!({
            "frame": columns.put(frame),
            "time_s": columns.put(time_s),
            "admitted": columns.put(admitted),
            "reason": columns.put_words(&reason),
            "occupancy": columns.put(occupancy),
            "vc_cells": columns.put(vc_cells),
            "active_vcs": columns.put(active_vcs),
            "threshold_cells": columns.put(threshold_cells),
            "share_cells": columns.put(share_cells),
            "held_cells": columns.put(held_cells),
            "drop_probability": columns.put(drop_probability),
            "tagged": columns.put(tagged),
        })
    };
    let Steps { time_s, kind, cell, vc, frame, occupancy, judgement } = steps;
    let steps = json!({
        "time_s": columns.put(time_s),
        "kind": columns.put(kind),
        "cell": columns.put(cell),
        "vc": columns.put(vc),
        "frame": columns.put(frame),
        "occupancy": columns.put(occupancy),
        "judgement": columns.put(judgement),
    });
    json!({
        "port": port,
        "capacity": capacity,
        "vcs": vcs,
        "kinds": STEPS,
        "cells": cells,
        "frames": frames,
        "judgements": judgements,
        "steps": steps,
        "cut_short": cut_short,
    })
}
