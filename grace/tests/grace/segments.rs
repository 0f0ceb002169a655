//! Lists of callbacks in segments, against a list in which each callback has a cookie of its own:
//! across the wrap of the sequence, whatever their owner does or leaves undone.

use std::collections::VecDeque;

use grace::{Cookie, Segments, Sequence};
use proptest::prelude::*;

use crate::{ended, told};

/// What the owner of the list does, or the driver of the grace periods.
#[derive(Clone, Copy, Debug)]
enum Move {
    Push(u64),
    /// Keeps a cookie for later.
    Snapshot,
    /// Tags with the cookie that was kept, if nothing was pushed since.
    AccelerateKept,
    Accelerate,
    Advance,
    Take(u64),
    Begin,
    End,
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        3 => (1..4u64).prop_map(Move::Push),
        1 => Just(Move::Snapshot),
        1 => Just(Move::AccelerateKept),
        2 => Just(Move::Accelerate),
        2 => Just(Move::Advance),
        1 => (0..5u64).prop_map(Move::Take),
        3 => Just(Move::Begin),
        3 => Just(Move::End),
    ];
    proptest::collection::vec(one, 0..100)
}

/// What the owner does wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    /// Tags with a cookie that was taken before the push.
    CookieBeforePush,
    /// Tags with the end of the grace period in progress.
    CookieOfThePresent,
    /// Takes everything for ready.
    AdvanceAll,
    /// Takes what was not ready.
    TakeTooMany,
}

/// The list, and beside it each callback that has not been run, with the cookie of its own push.
struct Story {
    list: Segments,
    own: VecDeque<Cookie>,
    sequence: Sequence,
    kept: Option<Cookie>,
    fault: Fault,
}

impl Story {
    fn new(ended: u64, fault: Fault) -> Self {
        let sequence = Sequence::after(ended);
        let list = Segments::new(sequence);
        Self { list, own: VecDeque::new(), sequence, kept: None, fault }
    }

    fn take(&mut self, step: Move) -> Result<(), String> {
        let sequence = self.sequence;
        match step {
            Move::Push(count) => {
                self.list.push(count);
                (0..count).for_each(|_| self.own.push_back(sequence.snapshot()));
                if self.fault != Fault::CookieBeforePush {
                    self.kept = None;
                }
            }
            Move::Snapshot => self.kept = Some(sequence.snapshot()),
            Move::AccelerateKept => {
                if let Some(cookie) = self.kept {
                    self.list.accelerate(cookie);
                }
            }
            Move::Accelerate if self.fault == Fault::CookieOfThePresent => {
                self.list.accelerate(Cookie::done_at(sequence.begin().end()));
            }
            Move::Accelerate => {
                let had_untagged = self.list.has_untagged();
                let has_tagged = self.list.accelerate(sequence.snapshot());
                if has_tagged == self.list.has_untagged() && had_untagged {
                    return Err("the answer does not say whether anything was tagged".into());
                }
            }
            Move::Advance if self.fault == Fault::AdvanceAll => self.list.advance_all(),
            Move::Advance => self.list.advance(sequence),
            Move::Take(count) => {
                let count = count.min(self.list.ready());
                self.list.take(count);
                let gone = count + u64::from(self.fault == Fault::TakeTooMany);
                self.own.drain(..self.own.len().min(gone as usize));
            }
            Move::Begin => self.sequence = sequence.begin(),
            Move::End => self.sequence = sequence.end(),
        }
        self.check()
    }

    fn is_done(&self, index: u64) -> bool {
        self.own.get(index as usize).is_some_and(|cookie| self.sequence.is_done(*cookie))
    }

    fn check(&self) -> Result<(), String> {
        if self.list.len() != self.own.len() as u64 || self.list.is_empty() != self.own.is_empty() {
            return Err(format!("{} in the list, {} in truth", self.list.len(), self.own.len()));
        }
        // What is ready is in front: so order is kept.
        if !(0..self.list.ready()).all(|index| self.is_done(index)) {
            return Err("one is ready before a full grace period after its push".into());
        }
        let Some(awaited) = self.list.awaited() else { return Ok(()) };
        match self.own.get(self.list.ready() as usize) {
            None => Err("nobody waits for what is awaited".into()),
            Some(own) if !awaited.is_at_or_after(*own) => {
                Err("what is awaited is too early for the oldest that waits".into())
            }
            Some(_) => Ok(()),
        }
    }

    /// What an owner does that never leaves anything undone: then nothing waits longer than it
    /// must.
    fn see_to_it(&mut self) -> Result<(), String> {
        self.take(Move::Advance)?;
        self.take(Move::Accelerate)?;
        if self.list.has_untagged() {
            return Err("two tagged segments are not enough".into());
        }
        let done = (0..self.own.len() as u64).take_while(|index| self.is_done(*index)).count();
        if self.list.ready() != done as u64 {
            return Err(format!("{} are ready, {done} could be", self.list.ready()));
        }
        Ok(())
    }
}

fn follow(ended: u64, moves: &[Move], fault: Fault) -> Result<(), String> {
    let mut story = Story::new(ended, fault);
    moves.iter().try_for_each(|step| story.take(*step))?;
    // However it was left: three grace periods on, everything is ready.
    for _ in 0..3 {
        for step in [Move::Advance, Move::Accelerate, Move::Begin, Move::End, Move::Advance] {
            story.take(step)?;
        }
    }
    match story.list.ready() == story.list.len() {
        true => Ok(()),
        false => Err("some never become ready".into()),
    }
}

fn follow_diligently(ended: u64, moves: &[Move]) -> Result<(), String> {
    let mut story = Story::new(ended, Fault::None);
    story.see_to_it()?;
    moves.iter().try_for_each(|step| {
        story.take(*step)?;
        story.see_to_it()
    })
}

proptest! {
    #![proptest_config(crate::written_nowhere())]

    #[test]
    fn nothing_is_ready_early_or_lost_whatever_the_owner_does(ended in ended(), moves in moves()) {
        let outcome = follow(ended, &moves, Fault::None);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }

    #[test]
    fn two_tagged_segments_are_enough_for_nothing_to_be_late(ended in ended(), moves in moves()) {
        let outcome = follow_diligently(ended, &moves);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }

    #[test]
    fn an_old_cookie_hurries_nobody(ended in ended(), apart in 1..5u64) {
        let sequence = Sequence::after(ended);
        let later = Sequence::after(ended.wrapping_add(apart));
        let mut list = Segments::new(sequence);
        list.push(1);
        list.accelerate(later.snapshot());
        prop_assert!(list.accelerate(sequence.snapshot()), "it joins those that are older");
        prop_assert_eq!(list.awaited(), Some(later.snapshot()));
        list.advance(later);
        prop_assert_eq!(list.ready(), 0);
    }

    #[test]
    fn no_count_panics(
        ended in ended(),
        counts in proptest::collection::vec(prop_oneof![any::<u64>(), Just(u64::MAX)], 1..9),
    ) {
        let mut sequence = Sequence::after(ended);
        let mut list = Segments::new(sequence);
        for count in counts {
            list.push(count);
            list.accelerate(sequence.snapshot());
            sequence = if sequence.in_progress() { sequence.end() } else { sequence.begin() };
            list.advance(sequence);
            prop_assert!(list.ready() <= list.len());
        }
        list.advance_all();
        prop_assert_eq!(list.ready(), list.len());
        list.take(u64::MAX);
        prop_assert!(list.is_empty());
    }
}

#[test]
fn each_fault_of_an_owner_is_found() {
    for (fault, what) in [
        (Fault::CookieBeforePush, "before a full grace period"),
        (Fault::CookieOfThePresent, "before a full grace period"),
        (Fault::AdvanceAll, "before a full grace period"),
        (Fault::TakeTooMany, "in truth"),
    ] {
        let told = told(&(ended(), moves()), |(ended, moves)| follow(ended, &moves, fault));
        println!("{fault:?}: {told}");
        assert!(told.contains(what) || told.contains("too early"), "{fault:?}: {told}");
    }
}
