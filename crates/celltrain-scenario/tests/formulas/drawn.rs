//! Generates random formulas.

use celltrain_core::policy::formula::PORT_NAMES;
use celltrain_core::rng::Stream;
use celltrain_core::tcp::congestion::formula::table::{NAMES, Table};
use celltrain_formula::samples::{Sample, Texts};
use celltrain_formula::{Kind, Unit};
use serde_json::{Map, Value, json};

/// Stream of random numbers for a test.
pub(crate) struct Draws(Stream);

impl Draws {
    pub(crate) fn new(seed: u64) -> Self {
        Self(Stream::new(seed, "formulas"))
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        self.0.below(bound)
    }

    /// Draws a policy of random formulas with consistent units, for ports crossed by a VC with this name.
    pub(crate) fn formula(&mut self, vc: &str) -> Value {
        let cells = Kind::Number(Some(Unit::CELLS));
        let pure = Kind::Number(Some(Unit::NONE));
        let seconds = Kind::Number(Some(Unit::SECONDS));
        let own = |name: &str, kind: Kind, by_vc: bool| Sample { name: name.into(), kind, by_vc };
        let mut constants = vec![own("R", cells, false), own("z", pure, false)];
        // Half of the formulas have no per-VC table, because the check must also support the name V without a table.
        let has_table = self.below(2) == 0;
        if has_table {
            constants.extend([own("W", pure, true), own("w", pure, true)]);
        }
        let port_state = [own("average", cells, false), own("count", pure, false), own("since", seconds, false)];
        let vc_state = [own("held", cells, false), own("phase", pure, false)];
        let at_start: Vec<Sample> = port_names(|name| ["K", "V", "C"].contains(&name));
        let with_state = self.below(3) > 0;
        let mut frame: Vec<Sample> =
            port_names(|name| name != "sojourn").into_iter().chain(constants.clone()).collect();
        let mut cell: Vec<Sample> = port_names(|name| ["K", "V", "C", "X"].contains(&name));
        cell.extend(constants.iter().filter(|sample| !sample.by_vc).cloned());
        let mut policy = Map::new();
        let r = if self.below(2) == 0 {
            self.text(&at_start, cells, 2, false)
        } else {
            format!("{} / {} * K", self.below(17), ["16", "V", "(4 * V)"][self.below(3) as usize])
        };
        let mut values = json!({"R": r, "z": f64::from(self.below(30)) / 10.0});
        if has_table {
            values["W"] = json!({vc: 1 + self.below(8), "default": 1 + self.below(3)});
            values["w"] = json!("W / sum(W)");
        }
        policy.insert("constants".into(), values);
        if with_state {
            frame.extend(port_state.iter().chain(&vc_state).cloned());
            cell.extend(port_state.iter().cloned());
            policy.insert("state".into(), json!({"average": "0 cells", "count": -1, "since": "0 s"}));
            policy
                .insert("vc_state".into(), json!({"held": "0 cells", "phase": if has_table { "w" } else { "1 / V" }}));
            let all: Vec<Sample> = port_state.iter().chain(&vc_state).cloned().collect();
            for event in ["on_frame", "on_admission", "on_refusal"] {
                self.updates(&mut policy, event, &all, &frame, true);
            }
            if self.below(3) == 0 {
                self.updates(&mut policy, "on_departure", &port_state, &cell, false);
                self.updates(&mut policy, "on_cells", &port_state, &cell, false);
                if policy.contains_key("on_cells") {
                    policy.insert("every".into(), json!(1 + self.below(40)));
                }
            }
            if self.below(3) == 0 {
                self.in_time(&mut policy, [&frame, &cell], [&all, &port_state]);
            }
        }
        policy.insert("admit".into(), json!(self.admit(&frame)));
        let needs_one_queue = ONE_QUEUE.iter().any(|key| policy.contains_key(*key));
        let when_full = if needs_one_queue { 2 } else { 3 };
        let when_full = ["lose_rest_of_frame", "lose_cell", "push_out_front"][self.below(when_full) as usize];
        policy.insert("when_full".into(), json!(when_full));
        Value::Object(policy)
    }

    /// Generates a congestion control with random formulas of consistent units, for segments of `mss` bytes.
    pub(crate) fn control(&mut self, mss: u64) -> Value {
        let pure = Kind::Number(Some(Unit::NONE));
        let own = |name: &str, kind: Kind| Sample { name: name.into(), kind, by_vc: false };
        let mut names: Vec<Sample> = NAMES.iter().map(|(name, _)| own(name.name, name.kind)).collect();
        names.extend([own("beta", pure), own("kept", pure), own("since", Kind::Number(Some(Unit::SECONDS)))]);
        let changing = |name: &str| ["cwnd", "ssthresh", "kept", "since"].contains(&name);
        let changing: Vec<Sample> = names.iter().filter(|sample| changing(&sample.name)).cloned().collect();
        let mut control = Map::new();
        control.insert("constants".into(), json!({"beta": f64::from(self.below(12)) / 10.0}));
        control.insert("state".into(), json!({"kept": "beta * 3", "since": "0 s"}));
        for event in ["on_ack", "on_loss", "on_timeout"] {
            let known: Vec<Sample> =
                names.iter().filter(|sample| event == "on_ack" || sample.name != "acked").cloned().collect();
            self.updates(&mut control, event, &changing, &known, false);
        }
        // Let cwnd grow in most formulas, so that the run covers more cases.
        let grown =
            control.get("on_ack").and_then(|updates| updates["cwnd"].as_str()).unwrap_or("1 / cwnd").to_string();
        let cwnd = match self.below(3) {
            0 => grown,
            1 => format!("cwnd + min(1, abs({grown}))"),
            _ => format!("if cwnd < ssthresh then cwnd + acked else {grown}"),
        };
        let on_ack = control.entry("on_ack").or_insert_with(|| json!({}));
        on_ack["cwnd"] = json!(cwnd);
        let control = Value::Object(control);
        let table: Table =
            serde_json::from_value(control.clone()).expect("a table of congestion formulas has these keys");
        if table.check(mss).is_empty() { control } else { json!({"on_ack": {"cwnd": "cwnd + 1 / cwnd"}}) }
    }

    /// Draws weights for fair queuing from a random formula, for ports crossed by a VC with this name.
    pub(crate) fn weight(&mut self, vc: &str) -> Value {
        let pure = Kind::Number(Some(Unit::NONE));
        let own = |name: &str, by_vc: bool| Sample { name: name.into(), kind: pure, by_vc };
        let mut names = vec![own("V", false), own("z", false)];
        let mut constants = json!({"z": f64::from(self.below(30)) / 10.0});
        // Without a per-VC table, all weights are equal. The check must support the name V without a table too.
        if self.below(3) > 0 {
            names.extend([own("W", true), own("w", true)]);
            constants["W"] = json!({vc: 1 + self.below(8), "default": 1 + self.below(3)});
            constants["w"] = json!("W / sum(W)");
        }
        let depth = 1 + self.below(3);
        let text = self.text(&names, pure, depth, false);
        json!({"weight": format!("1 / V + min(99, abs({text}))"), "constants": constants})
    }

    /// Draws rules for frames at the head of the queue, and periodic updates. `frame` and `cell` are the names that
    /// rules for frames and rules for cells can use. `all` is the state of VCs, and `shared` is the state of the port.
    fn in_time(
        &mut self,
        policy: &mut Map<String, Value>,
        [frame, cell]: [&[Sample]; 2],
        [all, shared]: [&[Sample]; 2],
    ) {
        let seconds = Kind::Number(Some(Unit::SECONDS));
        let of_arrivals = |sample: &&Sample| ["Y", "N", "tagged"].iter().all(|name| sample.name != *name);
        let mut head: Vec<Sample> = frame.iter().filter(of_arrivals).cloned().collect();
        head.push(Sample { name: "sojourn".into(), kind: seconds, by_vc: false });
        self.updates(policy, "on_head", all, &head, true);
        if self.below(4) > 0 {
            let text = self.text(&head, Kind::Truth, 2, true);
            let rule = match self.below(4) {
                0 => text,
                1 => format!("random() < 0.{} and ({text})", self.below(10)),
                // Draw short times, because frames in short queues rarely wait longer.
                _ => format!("sojourn > {} us and ({text})", 10 + self.below(500)),
            };
            policy.insert("drop_head".into(), json!(rule));
            self.updates(policy, "on_drop", all, &head, true);
            self.updates(policy, "on_send", all, &head, true);
        }
        if self.below(2) == 0 {
            let mut timed = cell.to_vec();
            timed.push(Sample { name: "now".into(), kind: seconds, by_vc: false });
            self.updates(policy, "on_period", shared, &timed, false);
            if policy.contains_key("on_period") {
                policy.insert("period".into(), json!(format!("{}us", 1 + self.below(900))));
            }
        }
    }

    /// Draws an admission rule. Most rules admit some frames, so that the run covers more cases.
    fn admit(&mut self, names: &[Sample]) -> String {
        let depth = 1 + self.below(4);
        let text = self.text(names, Kind::Truth, depth, true);
        match self.below(3) {
            0 => text,
            1 => format!("X <= R or ({text})"),
            _ => format!("X <= K / {} or ({text})", 2 + self.below(30)),
        }
    }

    fn updates(&mut self, policy: &mut Map<String, Value>, event: &str, of: &[Sample], names: &[Sample], random: bool) {
        let mut updates = Map::new();
        for state in of {
            if self.below(3) == 0 {
                let depth = 1 + self.below(3);
                updates.insert(state.name.clone(), json!(self.text(names, state.kind, depth, random)));
            }
        }
        if !updates.is_empty() {
            policy.insert(event.into(), Value::Object(updates));
        }
    }

    fn text(&mut self, names: &[Sample], kind: Kind, depth: u32, random: bool) -> String {
        let Self(stream) = self;
        Texts { below: &mut |bound| stream.below(bound), names, random }.of(kind, depth)
    }
}

/// Keys of rules that need a port with a single queue from which no cell is pushed out.
pub(crate) const ONE_QUEUE: [&str; 5] = ["on_departure", "on_cells", "on_head", "drop_head", "on_period"];

fn port_names(keep: fn(&str) -> bool) -> Vec<Sample> {
    let all = PORT_NAMES.iter().map(|(known, _)| known).filter(|known| keep(known.name));
    all.map(|known| Sample { name: known.name.into(), kind: known.kind, by_vc: false }).collect()
}
