//! What `docs/policy-costs.md` says is counted, counted again by hand.

use super::*;
use crate::policy::PolicyConfig;
use crate::scheduler::SchedulerConfig;

/// Bits for each VC, port and place, then operations for each cell and frame.
fn sums([bits_per_vc, bits_per_port, bits_per_place, operations_per_cell, operations_per_frame]: [u32; 5]) -> Sums {
    Sums { bits_per_vc, bits_per_port, bits_per_place, operations_per_cell, operations_per_frame }
}

/// What techniques have in common, as (bits a VC, bits a port, operations a cell).
///
/// X and K. X is compared with K as a cell comes (both are read) and counted up, and down as one goes (read, written).
const ROOM: [u32; 3] = [0, 16 + 16, (2 + 1 + 1 + 1) + (1 + 1 + 1)];
/// Three bits for the frame under way, read and written with each cell.
const FRAMES: [u32; 3] = [3, 0, 1 + 1];
/// A count for each VC: read, changed and written as a cell comes, and again as one goes.
const COUNT: [u32; 3] = [16, 0, 3 + 3];
/// `N_a`: the count was 0, and one VC more is active; the count becomes 0, and it is one less.
const ACTIVE: [u32; 3] = [0, 16, (1 + 3) + (1 + 3)];
/// A ring of VCs. Where the count was 0 the last and the one behind it are read, and both and the new one written. As a
/// cell goes the last, the first and the one behind that are read, one is written, and the count is compared with 0.
const RING: [u32; 3] = [16, 16, (1 + 2 + 3) + (3 + 1 + 1)];
/// `N_v` up and down.
const MEMBERS: [u32; 3] = [0, 16, 3 + 3];
/// The share's reciprocal; when the next is due; the node of a tournament, a time and a VC; the one before in the ring.
/// The clock. The ring's other way changes at the two ends of where one joins and one leaves. When it is due: two words
/// read, one written, an addition or a comparison. Who is due, and when again: three read, two written, the clock up,
/// the time up, and one compared with the other.
const SHARES: [u32; 3] = [32 + 32 + (32 + 16) + 16, 32, (2 + 2) + (2 + 1 + 1) + (3 + 2 + 3)];
/// A tournament of 1,024 VCs is played twice: at each of its ten levels one is read, compared, and the winner written.
const TOURNAMENT: [u32; 3] = [0, 0, 2 * 10 * 3];
/// First and last of a VC's queue.
const ENDS: [u32; 3] = [16 + 16, 0, 0];
/// The first free place. A cell takes it: it, the one behind it and the queue's last are read, and the first free, the
/// link of the last and the last written; the queue was empty, or not. As one goes it is the same the other way.
const LINKS: [u32; 3] = [0, 16, (3 + 3 + 1) + (3 + 3 + 1)];
/// A pointer for each place.
const LINK: u32 = 16;

/// Parts together, with what a technique has of its own.
fn all(parts: &[[u32; 3]], own: [u32; 3], places: u32, frame: u32) -> Sums {
    let [vc, port, cell] = [0, 1, 2].map(|i| own[i] + parts.iter().map(|part| part[i]).sum::<u32>());
    sums([vc, port, places, cell, frame])
}

/// Of each frame: words read + additions and comparisons + multiplications. X and the VC's own count have been read
/// with the cell.
#[expect(clippy::match_same_arms, reason = "each policy is counted by itself")]
fn policy(name: &str) -> Option<Sums> {
    let frames = [ROOM, FRAMES];
    let counts = [ROOM, FRAMES, COUNT];
    let active = [ROOM, FRAMES, COUNT, ACTIVE];
    let ring = [ROOM, FRAMES, COUNT, RING, MEMBERS];
    let weighted = [ROOM, FRAMES, COUNT, RING, MEMBERS, SHARES, TOURNAMENT];
    Some(match name {
        "tail_drop" => all(&[ROOM], [0; 3], 0, 0),
        "ppd" => all(&frames, [0; 3], 0, 0),
        // R, against X.
        "epd" => all(&frames, [0, 16, 0], 0, 1 + 1),
        // Two thresholds, of which one is read.
        "double_epd" => all(&frames, [0, 32, 0], 0, 1 + 1),
        // Th, k and N_a are read; Q > Th; Y_j * N_a > k * Q.
        "per_vc_accounting" => all(&active, [0, 32, 0], 0, 3 + (1 + 1) + 2),
        // k Th is one constant.
        "per_vc_accounting_fixed" => all(&active, [0, 32, 0], 0, 3 + (1 + 1) + 1),
        "virtual_queuing" => all(&ring, [0, 32, 0], 0, 3 + (1 + 1) + 2),
        // k Th and N_v; M_j * N_v > k Th.
        "virtual_queuing_threshold" => all(&ring, [0, 16, 0], 0, 2 + 1 + 1),
        // m_j; Th, k and the sum, which a VC's m_j joins and leaves: both are read, added and the sum written. Of a
        // frame Th, k, N_v, m_j and the sum; Q > Th; M_j * N_v > k * Q * (m_j * N_v + 1 - sum).
        "virtual_queuing_weighted" => all(&weighted, [16, 48, 2 * (2 + 1 + 1)], 0, 5 + (1 + 1 + 2) + (1 + 2 + 1)),
        // R, Z and N_a; X > R; Y_i * N_a > Z * X.
        "selective_drop" => all(&active, [0, 32, 0], 0, 3 + (1 + 1) + 2),
        // Z W_i / W by VC; R. X > R; X_i > (Z W_i / W) * X.
        "wba" => all(&counts, [16, 16, 0], 0, 2 + (1 + 1) + 1),
        // R, Z (K - R) and N_a; X > R; Y_i * N_a * (X - R) > Z (K - R) * X.
        "fba" => all(&active, [0, 32, 0], 0, 3 + (1 + 1 + 1) + 3),
        // Z (K - R) W_i / W by VC; R. X > R; X_i * (X - R) > constant * X.
        "weighted_fba" => all(&counts, [16, 16, 0], 0, 2 + (1 + 1 + 1) + 2),
        // A threshold and a bit by VC, both read and the bit written; X_i against the threshold.
        "single_drop" => all(&counts, [16 + 1, 0, 0], 0, 2 + 1 + 1),
        // R_i and a slope by VC; R, Z and a generator's 32 bits. Of a frame R_i, the slope, R and Z are read and the
        // generator written; X_i > R_i, X_i > Z * R_i, X > R, slope * (X_i - R_i), and a draw compared with it.
        "dfba" => all(&counts, [32, 16 + 16 + 32, 0], 0, (4 + 1) + (1 + 1 + 1 + 1 + 1) + 2 + 1),
        // w_i and two constants by VC; L, H and a generator. All five are read and the generator written; X > L, X > H,
        // X_i > X * w_i; c * (X_i - X w_i) / X + d * (X - L), and a draw compared with it.
        "dfba_1998" => all(&counts, [48, 32 + 32, 0], 0, (5 + 1) + (1 + 1 + 1 + 1 + 1 + 1 + 1) + (1 + 2 + 1) + 1),
        // The three bits are looked at once more as the cell would go: one read, one written, and whether it is
        // refused.
        "drop_from_front" => all(&frames, [0, 0, 2 + 1], 0, 0),
        _ => return None,
    })
}

fn scheduler(name: &str) -> Option<Sums> {
    Some(match name {
        // First and last place: each is read, moved on and written.
        "fifo" => all(&[], [0, 32, 3 + 3], 0, 0),
        // Ends of three queues; each is compared.
        "strict_priority" => all(&[LINKS], [0, 3 * 32, 3 + 3], LINK, 0),
        // Ends of two queues, g and a credit. g, the credit and whether either queue is empty are read, the credit is
        // written; up, down, against 0, and which queue.
        "guaranteed_rate" => all(&[LINKS], [0, 2 * 32 + 16 + 32, 4 + 1 + 4], LINK, 0),
        // A weight's reciprocal, F_prev and a node; v_now. F: v_now, F_prev and the reciprocal are read and F written;
        // the larger, and the sum. Who goes: the winner and F_prev are read, v_now and F_prev written, and one
        // addition.
        "wfq" | "wfq_formula" => {
            all(&[ENDS, LINKS, TOURNAMENT], [16 + 32 + (32 + 16), 32, (3 + 1 + 2) + (2 + 2 + 1)], LINK, 0)
        }
        "round_robin" => all(&[ENDS, LINKS, RING], [0; 3], LINK, 0),
        "minimum_rate" => all(&[ENDS, LINKS, RING, SHARES, TOURNAMENT], [0; 3], LINK, 0),
        _ => return None,
    })
}

#[test]
fn every_policy_and_scheduler_costs_what_a_count_by_hand_comes_to() {
    let policies = PolicyConfig::costs().into_iter().map(|(name, cost)| (name, cost, policy(name)));
    let schedulers = SchedulerConfig::costs().into_iter().map(|(name, cost)| (name, cost, scheduler(name)));
    let (mut number, mut differ) = (0, Vec::new());
    for (name, cost, counted) in policies.chain(schedulers) {
        // A model that is added to the list is counted on its own page first.
        let Some(counted) = counted else { continue };
        number += 1;
        if cost.sums() != counted {
            differ.push(format!("{name}: {:?}, by hand {counted:?}", cost.sums()));
        }
    }
    assert!(number >= 17 + 6, "{number} models of the list have a count by hand");
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
