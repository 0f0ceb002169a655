//! Small domains that grow meanwhile: each is read in until it has words for every processor, while an updater waits
//! for its grace periods, now and then in a section of another domain.

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread;

use quiescence::Srcu;

use super::herd::Herd;
use super::sleepable::{self, Place, Where, Yard, Yards};
use crate::delays;
use crate::kinds::{Deed, FaultKind, Step, Way};
use crate::random::Random;
use crate::station::Station;
use crate::updaters;

/// Threads that read in a small domain.
const READERS: usize = 3;

/// Sections of each of them, at most. A domain grows after some 64.
const SECTIONS_MAX: u64 = 300;

/// One domain after the other until the run is over.
pub(crate) fn run(yards: &Yards, herd: &Arc<Herd>, station: &Station, random: &mut Random) {
    while !station.is_over() {
        station.begin(Deed::Grown);
        round(yards, herd, station, random);
        station.did(Deed::Grown);
    }
}

fn round(yards: &Yards, herd: &Arc<Herd>, station: &Station, random: &mut Random) {
    let small = Yard::new("small sleepable domain", Place::Made(Arc::new(Srcu::new())));
    let sections = 1 + random.below(SECTIONS_MAX);
    thread::scope(|scope| {
        let mut readers = Vec::new();
        for _ in 0..READERS {
            let (small, seed) = (&small, random.next());
            let read = move || {
                let _stay = herd.join();
                delays::seed_thread(seed);
                let (seat, mut random) = (small.seat(station), Random::from_state(seed));
                (0..sections).for_each(|_| sleepable::section(small, &seat, &mut random));
            };
            // Where the system is short of threads there are fewer readers.
            readers.extend(thread::Builder::new().spawn_scoped(scope, read));
        }
        while readers.iter().any(|reader| !reader.is_finished()) {
            update(yards, &small, station, random);
        }
        for reader in readers {
            if reader.join().is_err() {
                station.fault(FaultKind::Panic, small.arena.name, || {
                    "a reader of a small domain; see standard error".to_owned()
                });
            }
        }
    });
    if random.one_in(2) {
        sleepable::close(&small.arena, &station.ledger);
    }
    // Else the domain ends with what waits in it.
}

/// Updates once, by one who waits.
fn update(yards: &Yards, small: &Yard, station: &Station, random: &mut Random) {
    const WAYS: [Way; 6] =
        [Way::Synchronize, Way::Expedited, Way::StartPoll, Way::Store, Way::Retire, Way::IntoBox];
    let seat = small.seat(station);
    let way = WAYS[random.below(WAYS.len() as u64) as usize];
    station.post().begin(Step::Update(way));
    // Domains wait for their own sections only.
    let beside = random.one_in(4).then(|| yards.at(Where::Static).hold());
    updaters::update(&seat, way, &mut VecDeque::new(), random);
    station.ledger.did(Deed::Beside, u64::from(beside.is_some()));
}
