//! The topologies of `celltrain-scenario`, and the one from `docs/adding-a-topology.md`.

pub use celltrain_scenario::topology::*;

pub mod ring;

#[cfg(test)]
mod tests {
    use super::*;
    use celltrain_core::cancellation::CancellationToken;

    #[test]
    fn the_predicted_size_of_the_example_ring_equals_the_size_of_the_built_ring() {
        let (size, layout) = (ring::sample().size(), ring::sample().lay_out(&CancellationToken::never()).unwrap());
        let crossings: usize = layout.flows.iter().map(|flow| flow.data.len()).sum();
        assert_eq!(size.nodes, layout.graph.nodes.len() as u64);
        assert_eq!(size.links, layout.graph.links.len() as u64);
        assert_eq!((size.flows, size.crossings), (layout.flows.len() as u64, crossings as u64));
    }
}
