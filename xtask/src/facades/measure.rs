//! Measures programs on crates that facades stand in for, with both: `facades/client-bench`, built
//! twice and run in turns.
//!
//! Two builds, and not two subjects of `rcu bench`: a patch holds for all of a program.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::{CLIENTS, as_workspace, cargo_with, facades, target};
use crate::say;
use crate::tools::{copy_tree, run, works_with};

/// The program.
const PROGRAM: &str = "client-bench";

/// The crates that its programs use.
const ORIGINALS: [&str; 3] = ["arc-swap", "crossbeam-epoch", "seize"];

/// What it is asked for, each in a process of its own, and of which crate that tells something.
const CASES: [(&str, &str); 7] = [
    ("pin", "crossbeam-epoch"),
    ("arc-swap", "arc-swap"),
    ("skiplist", "crossbeam-skiplist"),
    ("moka", "moka"),
    ("papaya", "papaya"),
    ("pinned", "crossbeam-epoch"),
    ("papaya-pinned", "papaya"),
];

/// How the row begins of the crate that is no client: its tests are part of its sources.
pub(super) const EPOCH: &str = "crossbeam-epoch | 0.9.21";

/// What our domains are limited to meanwhile.
const LIMIT_BYTES: u32 = 64 << 20;

/// The numbers of a figure, by round: theirs, and ours.
type Figures = BTreeMap<(usize, String), [Vec<f64>; 2]>;

/// Builds the program with both crates, runs it so many rounds, prints a table, and writes what
/// differs into docs/WORKS_WITH.md.
///
/// # Errors
/// If it cannot be built or run.
pub(super) fn measure(rounds: u32) -> Result<()> {
    let programs = [build(false)?, build(true)?];
    let mut figures = Figures::new();
    for round in 0..rounds {
        for (case, _) in CASES {
            say::begun(&format!("round {} of {rounds}: {case}", round + 1));
            // Each comes first in every second round.
            let first = round as usize % 2;
            for which in [first, 1 - first] {
                let mut program = Command::new(&programs[which]);
                program.arg(case).env("QUIESCENCE_LIMIT_BYTES", LIMIT_BYTES.to_string());
                note(&mut figures, case, which, &run(&mut program)?)?;
            }
        }
    }
    say::line(table(&figures).trim_end())?;
    for (of, differs) in speeds(&figures) {
        let client = CLIENTS.iter().find(|client| client.name == of);
        let (row, original) =
            client.map_or((EPOCH.to_owned(), of), |client| (client.row(), &client.original));
        let speed = format!("{differs}nothing else ({rounds} rounds, COMMIT, DAY)");
        works_with(&[&row, original, "=", "=", "=", &speed])?;
    }
    Ok(())
}

/// By crate the figures whose ratio is on one side of 1 in all rounds.
fn speeds(figures: &Figures) -> BTreeMap<&'static str, String> {
    let mut speeds = BTreeMap::<_, String>::new();
    for ((_, name), both) in figures {
        let is_of = |(case, _): &&(&str, _)| name.starts_with(&format!("{case}: "));
        let Some((_, of)) = CASES.iter().find(is_of) else { continue };
        let speed = speeds.entry(*of).or_default();
        let ratios = ratios(both);
        if ratios.iter().all(|ratio| *ratio < 1.0) || ratios.iter().all(|ratio| *ratio > 1.0) {
            *speed += &format!("{name} {}; ", spread(&ratios, 2));
        }
    }
    speeds
}

fn ratios([theirs, ours]: &[Vec<f64>; 2]) -> Vec<f64> {
    ours.iter().zip(theirs).map(|(ours, theirs)| ours / theirs).collect()
}

/// Notes what a program has printed: a name, a number and a unit in each line.
fn note(figures: &mut Figures, case: &str, which: usize, printed: &str) -> Result<()> {
    for line in printed.lines() {
        let unexpected = || format!("{case} has printed \"{line}\"");
        let [name, number, unit] =
            line.split('\t').collect::<Vec<_>>().try_into().ok().with_context(unexpected)?;
        let place = figures.len();
        let shown = format!("{case}: {name} ({unit})");
        let known = figures.keys().find(|(_, other)| *other == shown).map(|(place, _)| *place);
        let numbers = figures.entry((known.unwrap_or(place), shown)).or_default();
        numbers[which].push(number.parse().with_context(unexpected)?);
    }
    Ok(())
}

fn table(figures: &Figures) -> String {
    let mut table = String::from("| figure | theirs | ours | ours / theirs |\n|---|---|---|---|\n");
    for ((_, name), both) in figures {
        let [theirs, ours] = both;
        table += &format!(
            "| {name} | {} | {} | {} |\n",
            spread(theirs, 1),
            spread(ours, 1),
            spread(&ratios(both), 2)
        );
    }
    table
}

/// The median, with the least and the most.
fn spread(numbers: &[f64], decimals: usize) -> String {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    let (Some(least), Some(most)) = (sorted.first(), sorted.last()) else {
        return String::from("none");
    };
    let median = sorted[sorted.len() / 2];
    format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
}

/// The program, built with the original or with the facade.
fn build(patched: bool) -> Result<PathBuf> {
    let whose = if patched { "ours" } else { "theirs" };
    let place = target().join(PROGRAM).join(whose);
    let _ = fs::remove_dir_all(&place);
    copy_tree(&facades().join(PROGRAM), &place)?;
    as_workspace(&place)?;
    let ours = ORIGINALS.map(|original| (original, original));
    let cargo = || cargo_with(&place, ours.into_iter().filter(|_| patched));
    run(cargo().args(["build", "--release", "--quiet"]))?;
    for original in ORIGINALS {
        let tree = run(cargo().args(["tree", "--invert", original, "--depth", "0"]))?;
        let facade = facades().join(original);
        let is_ours = tree.contains(&facade.display().to_string());
        ensure!(is_ours == patched, "{original} is not that of this build: {tree}");
    }
    let program = place.join(PROGRAM);
    fs::copy(target().join("build/release").join(PROGRAM), &program)?;
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_stand_in_the_order_they_are_printed_in() {
        let mut figures = Figures::new();
        for (theirs, ours) in [(4.0, 1.0), (5.0, 2.0), (6.0, 1.5)] {
            note(&mut figures, "pin", 0, &format!("pin\t{theirs}\tns\nA\t8\tMB\n")).unwrap();
            note(&mut figures, "pin", 1, &format!("pin\t{ours}\tns\nA\t8\tMB\n")).unwrap();
        }
        let rows = "| pin: pin (ns) | 5.0 (4.0 to 6.0) | 1.5 (1.0 to 2.0) | 0.25 (0.25 to 0.40) |\n\
                    | pin: A (MB) | 8.0 (8.0 to 8.0) | 8.0 (8.0 to 8.0) | 1.00 (1.00 to 1.00) |\n";
        assert!(table(&figures).ends_with(rows), "{}", table(&figures));
        assert_eq!(speeds(&figures)["crossbeam-epoch"], "pin: pin (ns) 0.25 (0.25 to 0.40); ");
        let error = note(&mut figures, "pin", 0, "panicked").unwrap_err().to_string();
        assert_eq!(error, "pin has printed \"panicked\"");
    }
}
