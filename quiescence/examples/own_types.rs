//! `Retire` and `retire_sized`: owners of one's own, and what they count against the limit.

use std::collections::BTreeMap;
use std::time::Duration;

use quiescence::tuning::Tuning;
use quiescence::{Domain, Retire};

/// Rows in one piece each.
struct Table {
    rows: Vec<Box<[u64; 512]>>,
}

impl Retire for Table {
    fn bytes(&self) -> usize {
        self.rows.capacity() * size_of::<Box<[u64; 512]>>() + self.rows.len() * 4096
    }
}

fn main() {
    let mut tuning = Tuning::default();
    tuning.lazy = Duration::MAX; // nothing is dropped before it has been looked at
    let domain = Domain::builder().tuning(tuning).build();

    // A type of one's own says what it owns.
    let table = Table { rows: vec![Box::new([0; 512]); 10] };
    let bytes = table.bytes();
    domain.retire(table).expect("not in a section");
    // The library adds the few words that it keeps for each value that waits.
    let waiting = || usize::try_from(domain.statistics().bytes_waiting).unwrap();
    let with_words = |bytes: usize, values: usize| bytes..bytes + values * 100;
    assert!(with_words(bytes, 1).contains(&waiting()));

    // Of a liburcu one the caller says it.
    let names: BTreeMap<u32, String> = (0..100).map(|id| (id, format!("interface {id}"))).collect();
    domain.retire_sized(names, 100 * 64).expect("not in a section");
    println!("{} bytes wait", waiting());

    // Boxes, vectors and strings know.
    domain.retire(vec![0_u8; 1000]).expect("not in a section");
    assert!(with_words(bytes + 6400 + 1000, 3).contains(&waiting()));

    domain.barrier();
    assert_eq!(waiting(), 0);
}
