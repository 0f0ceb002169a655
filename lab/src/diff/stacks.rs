//! Stacks with the number of samples that saw them: from `perf script`, or collapsed already.

use std::collections::BTreeMap;
use std::path::Path;

use crate::exit::{Failure, Result};

/// A profile: how many samples saw which stack, the outermost function first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(super) struct Profile {
    pub(super) stacks: BTreeMap<Vec<String>, u64>,
}

impl Profile {
    /// Reads a file of either kind.
    pub(super) fn read(path: &Path) -> Result<Profile> {
        let bytes = std::fs::read(path).map_err(|error| Failure::file("read", path, error))?;
        let wrong = |reason: &str| Failure::usage(format!("{}: {reason}", path.display()));
        if bytes.starts_with(b"PERFILE2") {
            return Err(wrong(
                "the data of perf record; give the output of `perf script -i` of it",
            ));
        }
        Profile::parse(&String::from_utf8_lossy(&bytes)).map_err(|reason| wrong(&reason))
    }

    /// Reads the output of `perf script`, whose frames are indented, or collapsed stacks.
    pub(super) fn parse(text: &str) -> Result<Profile, String> {
        let is_perf =
            text.lines().any(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let mut profile = if is_perf { of_perf_script(text) } else { of_collapsed(text)? };
        profile.stacks.retain(|_, count| *count > 0);
        if profile.stacks.is_empty() {
            return Err("no samples, neither of perf script nor as collapsed stacks".to_owned());
        }
        match profile.stacks.values().try_fold(0, |sum: u64, count| sum.checked_add(*count)) {
            Some(_) => Ok(profile),
            None => Err("the counts are too large: their sum does not fit 64 bits".to_owned()),
        }
    }

    /// Leaves only the stacks that a function whose name has this in it is part of, from there on.
    pub(super) fn within(self, part: &str) -> Profile {
        let mut kept = Profile::default();
        for (stack, count) in self.stacks {
            if let Some(start) = stack.iter().position(|frame| frame.contains(part)) {
                kept.add(stack[start..].to_vec(), count);
            }
        }
        kept
    }

    pub(super) fn samples(&self) -> u64 {
        self.stacks.values().sum()
    }

    fn add(&mut self, stack: Vec<String>, count: u64) {
        let own = self.stacks.entry(stack).or_default();
        *own = own.saturating_add(count);
    }
}

fn of_collapsed(text: &str) -> Result<Profile, String> {
    let mut profile = Profile::default();
    for (number, line) in (1_u64..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
        let stack = line.trim().rsplit_once(' ');
        let counted = stack.and_then(|(stack, count)| Some((stack, count.parse().ok()?)));
        let Some((stack, count)) = counted else {
            let what = "neither perf script nor a collapsed stack, as in `main;work 12`";
            return Err(format!("line {number}: {what}"));
        };
        profile.add(stack.split(';').map(|frame| short(frame).to_owned()).collect(), count);
    }
    Ok(profile)
}

/// A sample is a line about the thread, its frames from the innermost on, and an empty line.
fn of_perf_script(text: &str) -> Profile {
    let mut profile = Profile::default();
    let mut stack: Vec<String> = Vec::new();
    // The last sample need not end in an empty line.
    for line in text.lines().chain(std::iter::once("")) {
        if line.starts_with([' ', '\t']) && !line.trim().is_empty() {
            stack.extend(frame(line));
        } else if !stack.is_empty() {
            stack.reverse();
            profile.add(std::mem::take(&mut stack), 1);
        }
    }
    profile
}

/// The function of a line `address symbol+0xoffset (file)`.
fn frame(line: &str) -> Option<String> {
    let (_address, rest) = line.trim().split_once(' ')?;
    let (symbol, file) = rest.rsplit_once(" (").unwrap_or((rest, ""));
    let symbol = symbol.trim();
    let symbol = match symbol.rsplit_once("+0x") {
        Some((name, offset)) if offset.chars().all(|c| c.is_ascii_hexdigit()) => name,
        _ => symbol,
    };
    if symbol == "[unknown]" || symbol.is_empty() {
        let file = file.trim_end_matches(')').rsplit('/').next().unwrap_or_default();
        return Some(format!("[{}]", file.trim_matches(['[', ']'])));
    }
    Some(short(symbol).to_owned())
}

/// Without the hash that ends a name of Rust, which differs from version to version.
fn short(name: &str) -> &str {
    match name.rsplit_once("::h") {
        Some((path, hash)) if hash.len() == 16 && hash.chars().all(|c| c.is_ascii_hexdigit()) => {
            path
        }
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(stacks: &[(&str, u64)]) -> Profile {
        let stacks = stacks
            .iter()
            .map(|(stack, count)| (stack.split(';').map(str::to_owned).collect(), *count));
        Profile { stacks: stacks.collect() }
    }

    #[test]
    fn perf_script_and_collapsed_stacks_give_the_same_profile() {
        let script = "\
rcu 12 4250.5: 250000 cpu-clock:u: \n\
\t  15e0 bench::read::h0123456789abcdef+0x27 (/usr/bin/rcu)\n\
\t  90c0 main+0x360 (/usr/bin/rcu)\n\
\n\
rcu 12 4250.6: 250000 cpu-clock:u: \n\
\t  77 [unknown] (/usr/lib/libc.so.6)\n";
        let collapsed = "main;bench::read 1\n\n[libc.so.6] 1\n";
        let expected = profile(&[("main;bench::read", 1), ("[libc.so.6]", 1)]);
        assert_eq!(Profile::parse(script), Ok(expected.clone()));
        assert_eq!(Profile::parse(collapsed), Ok(expected));
    }

    #[test]
    fn stacks_below_a_function_begin_there_and_others_are_left_out() {
        let all =
            profile(&[("main;setup", 5), ("main;timed::run;read", 3), ("x;timed::run;read", 1)]);
        let within = all.within("timed");
        assert_eq!(within, profile(&[("timed::run;read", 4)]));
        assert_eq!(within.samples(), 4);
    }
}
