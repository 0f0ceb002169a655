//! The probes of this very program are those that docs/PROBES.md describes, and cost a `nop` each.
#![cfg(all(
    feature = "probes",
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]

use std::collections::{BTreeMap, BTreeSet};

use object::{Object, ObjectSection};

/// A note of the format `stapsdt`, version 3.
#[derive(Debug)]
struct Note {
    address: u64,
    provider: String,
    name: String,
    arguments: usize,
}

/// The notes of a section: each has the lengths of its name and its contents, a type, and both,
/// filled up to four bytes.
fn notes(mut bytes: &[u8]) -> Vec<Note> {
    let mut notes = Vec::new();
    while !bytes.is_empty() {
        let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let (name_length, length, kind) = (word(0), word(4), word(8));
        let contents_at = 12 + name_length.next_multiple_of(4);
        assert_eq!((&bytes[12..12 + name_length], kind), (b"stapsdt\0".as_slice(), 3));
        let contents = &bytes[contents_at..contents_at + length];
        // The address of the probe, of the base, and of the semaphore; three strings.
        let address = u64::from_le_bytes(contents[..8].try_into().unwrap());
        let strings = contents[24..].split(|byte| *byte == 0);
        let mut strings = strings.map(|text| String::from_utf8(text.to_vec()).unwrap());
        notes.push(Note {
            address,
            provider: strings.next().unwrap(),
            name: strings.next().unwrap(),
            arguments: strings.next().unwrap().split_whitespace().count(),
        });
        bytes = &bytes[contents_at + length.next_multiple_of(4)..];
    }
    notes
}

/// Name and number of arguments of every probe in the table of the document.
fn documented() -> BTreeMap<String, usize> {
    let document = include_str!("../../../docs/PROBES.md");
    let rows = document.lines().filter(|line| line.starts_with("| `"));
    let row = |line: &str| {
        let cells: Vec<&str> = line.split('|').collect();
        (cells[1].trim().trim_matches('`').to_owned(), cells[2].matches('`').count() / 2)
    };
    rows.map(row).collect()
}

#[test]
fn each_probe_is_documented_and_costs_a_nop() {
    // Everything that has a probe is used, and so is in the program.
    let domain = quiescence::Domain::new();
    drop(domain.retire(Box::new([0u8; 64])));
    drop(domain.try_retire(Box::new([0u8; 64])));
    domain.synchronize();
    domain.barrier();

    let program = std::fs::read(std::env::current_exe().unwrap()).unwrap();
    let program = object::File::parse(program.as_slice()).unwrap();
    let section = program.section_by_name(".note.stapsdt").expect("there are notes");
    let notes = notes(section.data().unwrap());
    let ours: Vec<&Note> = notes.iter().filter(|note| note.provider == "quiescence").collect();

    let documented = documented();
    let found: BTreeSet<&str> = ours.iter().map(|note| note.name.as_str()).collect();
    assert_eq!(found, documented.keys().map(String::as_str).collect());
    for note in ours {
        assert_eq!(note.arguments, documented[&note.name], "{note:?}");
        let text = program
            .sections()
            .find(|section| {
                (section.address()..section.address() + section.size()).contains(&note.address)
            })
            .expect("the probe is in the program");
        let nop: &[u8] =
            if cfg!(target_arch = "x86_64") { &[0x90] } else { &[0x1f, 0x20, 0x03, 0xd5] };
        let at = text.data_range(note.address, nop.len() as u64).unwrap();
        assert_eq!(at, Some(nop), "{note:?}");
    }
}
