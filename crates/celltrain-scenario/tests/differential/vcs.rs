//! Random options of individual VCs.

use celltrain_core::abr::Parameters;
use celltrain_core::gfr::Gfr;
use celltrain_core::scheduler::Class;
use celltrain_core::units::{BitRate, Duration};
use celltrain_scenario::scenario::VcOptions;
use proptest::prelude::*;
use proptest::sample::select;

use super::swarm::{Feature, Swarm};

/// Random options of a VC: a class, tagging, and a contract or ABR. The contract's `mfs` is drawn relative to the
/// longest frame.
#[derive(Clone, Debug)]
pub(super) struct OwnVc {
    pub(super) tagged: bool,
    pub(super) contract: Option<Gfr>,
    pub(super) abr: Option<Parameters>,
    pub(super) class: Class,
}

pub(super) fn vc() -> BoxedStrategy<OwnVc> {
    let contract = (
        select(&[1_000_000u64, 15_552_000, 31_104_000][..]),
        select(&[0u32, 1, 200][..]),
        select(&[0u64, 3, 100][..]),
        any::<bool>(),
    );
    let contract = contract.prop_map(|(mcr, mfs, cdvt, tagging)| Gfr {
        mcr: BitRate::from_bits_per_second(mcr),
        pcr: None,
        mfs,
        mbs: None,
        cdvt: Duration::from_microseconds(cdvt),
        tagging,
    });
    let class = select(&[Class::Ubr, Class::Vbr, Class::Cbr][..]);
    let service = (prop::option::weighted(0.8, contract), prop::option::weighted(0.6, abr()));
    (prop::bool::weighted(0.5), service, class)
        .prop_map(|(tagged, (contract, abr), class)| OwnVc { tagged, contract, abr, class })
        .boxed()
}

impl OwnVc {
    pub(super) fn options(&self, swarm: Swarm) -> VcOptions {
        let abr = self.abr.clone().filter(|_| swarm.has(Feature::Abr));
        if abr.is_some() {
            return VcOptions { abr, ..VcOptions::default() };
        }
        VcOptions {
            gfr: self.contract.clone().filter(|_| swarm.has(Feature::Contracts)),
            tagged: self.tagged && swarm.has(Feature::Tags),
            class: if swarm.has(Feature::Classes) { self.class } else { Class::default() },
            ..VcOptions::default()
        }
    }
}

pub(super) fn abr() -> BoxedStrategy<Parameters> {
    let factor = select(&[0.0625, 1.0, 1.0 / 32.0, 1.0 / 1024.0][..]);
    let rates = (select(&[None, Some(15_552_000u64), Some(1_000_000)][..]), select(&[0u64, 1_000_000, 7_776_000][..]));
    let counts = (select(&[32u32, 2, 4, 256][..]), 2u32..4, select(&[16_777_215u32, 64, 1000][..]));
    let times = (select(&[100_000u64, 100, 3_000][..]), select(&[500_000u64, 10_000][..]));
    let tagged = (any::<bool>(), select(&[20_000_000u64, 2_000_000, 424_000, 4_240][..]));
    let parts = (factor.clone(), factor, rates, counts, times, tagged);
    parts
        .prop_map(|(rif, rdf, (icr, mcr), (nrm, mrm, tbe), (trm, adtf), (out_of_rate, tcr))| {
            let rate = BitRate::from_bits_per_second;
            // A source whose rate is never below TCR sends no out-of-rate RM cells.
            let out_of_rate = out_of_rate && tcr > mcr;
            let icr = icr.map(|icr| rate(icr.max(mcr)));
            let (trm, adtf) = (Duration::from_microseconds(trm), Duration::from_microseconds(adtf));
            let (mcr, tcr) = (rate(mcr), rate(tcr));
            Parameters { icr, mcr, rif, rdf, nrm, mrm, tbe, trm, adtf, out_of_rate, tcr, ..Parameters::default() }
        })
        .boxed()
}
