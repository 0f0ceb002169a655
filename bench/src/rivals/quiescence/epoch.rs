//! The library's module with the interface of crossbeam-epoch.

use quiescence::Domain;

use super::super::crossbeam_epoch::epochs;

epochs! {
    quiescence::epoch, in Domain: |domain: &Domain| epoch::Collector::new_in(domain.clone());
    flush: quiescence::barrier, Domain::barrier;
}
