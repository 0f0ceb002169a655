//! Readers, drawn lazily: what a reader's word shows is drawn only when something loads it.
//!
//! A running reader alternates between sections and gaps, both exponentially distributed in its
//! running time. Its state is known at one moment, and drawn for a later one: step by step if only
//! a few sections can have begun and ended since, and from the stationary distribution if many have
//! (after 16 times the shorter of the two means, the first state no longer matters, up to one part
//! in e^16). Inside a section, its elapsed and its remaining time are both exponentially
//! distributed, and independent.

use grace::Number;
use grace::word;

use crate::events::Time;
use crate::random::Random;

/// So many times the shorter mean, and what a reader was at first is forgotten.
const FORGOTTEN: u64 = 16;

/// A reader by its place.
pub(super) type ReaderId = usize;

/// How a reader's sections come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// It has none.
    #[default]
    Quiet,
    /// Sections and gaps of these means.
    Sections { section_ns: Time, gap_ns: Time },
    /// QSBR: quiescent states so far apart in the mean.
    Qsbr { turn_ns: Time },
    /// As the thread says: [`Reader::enter`] and [`Reader::leave`].
    Explicit,
}

/// What it is in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Outside,
    /// In a section (or between two quiescent states) since `began`, for another `left` of running
    /// time.
    Inside { began: Time, left: Time },
}

/// The number that readers record, since when, and the one before.
#[derive(Clone, Copy, Debug)]
pub(super) struct Announced {
    pub(super) number: Number,
    pub(super) since: Time,
    pub(super) before: Number,
}

impl Announced {
    /// The word of a reader whose section began then.
    fn word_at(&self, began: Time) -> u64 {
        // Of a section that is older than the number before, the number does not matter: it is
        // another one than now.
        word::entered(if began >= self.since { self.number } else { self.before })
    }
}

/// One reader.
#[derive(Clone, Debug, Default)]
pub(super) struct Reader {
    pub(super) kind: Kind,
    state: State,
    /// When the state was so.
    at: Time,
    /// Whether its thread runs, since `at` at least.
    pub(super) running: bool,
    /// Whether it begins no more sections.
    ending: bool,
    random: Random,
    /// Where it stands in the list of the registered ones.
    pub(super) place: Option<usize>,
    /// Whether a driver that sleeps waits for it.
    pub(super) marked: bool,
    /// Which event of its leaving is the current one.
    pub(super) generation: u64,
    /// Whether its word has been written since it was looked at.
    written: bool,
}

impl Reader {
    pub(super) fn new(kind: Kind, random: Random) -> Self {
        Self { kind, random, written: true, ..Self::default() }
    }

    /// Its thread gets a CPU.
    pub(super) fn resume(&mut self, now: Time) {
        self.running = true;
        self.at = now;
    }

    /// Its thread loses its CPU.
    pub(super) fn pause(&mut self, now: Time) {
        self.advance(now);
        self.running = false;
    }

    /// Its thread begins a spell of reading; a QSBR reader comes online.
    pub(super) fn begin_spell(&mut self, now: Time) {
        self.advance(now);
        self.ending = false;
        self.written = true;
        if let Kind::Qsbr { turn_ns } = self.kind {
            self.state = State::Inside { began: now, left: self.draw_left(turn_ns) };
        }
    }

    /// Its thread is to end its spell of reading. Returns how long it has to run until it can.
    pub(super) fn end_spell(&mut self, now: Time) -> Time {
        self.advance(now);
        self.ending = true;
        match (self.kind, self.state) {
            (Kind::Qsbr { .. }, _) | (_, State::Outside) => {
                self.state = State::Outside;
                self.written = true;
                0
            }
            (_, State::Inside { left, .. }) => left,
        }
    }

    pub(super) fn enter(&mut self, now: Time) {
        self.state = State::Inside { began: now, left: Time::MAX };
        self.written = true;
    }

    pub(super) fn leave(&mut self) {
        self.state = State::Outside;
        self.written = true;
    }

    /// Draws what has become of it until now.
    pub(super) fn advance(&mut self, now: Time) {
        let since = self.at;
        self.at = now;
        if !self.running || now == since {
            return;
        }
        let span = now - since;
        match self.kind {
            Kind::Quiet | Kind::Explicit => {}
            Kind::Qsbr { turn_ns } => self.advance_qsbr(now, span, turn_ns),
            Kind::Sections { section_ns, gap_ns } => {
                self.advance_sections(now, span, section_ns, gap_ns);
            }
        }
    }

    /// What is left, in the mean so long: something is, or its end would be no later event.
    fn draw_left(&mut self, mean: Time) -> Time {
        self.random.exponential(mean).max(1)
    }

    fn advance_qsbr(&mut self, now: Time, span: Time, turn_ns: Time) {
        let State::Inside { left, .. } = &mut self.state else { return };
        if span < *left {
            *left -= span;
            return;
        }
        // Since the first of them: the last quiescent state is as long ago as the next is ahead.
        let ago = self.random.exponential(turn_ns).min(span - *left);
        let left = self.draw_left(turn_ns);
        self.state = State::Inside { began: now - ago, left };
        self.written = true;
    }

    fn advance_sections(&mut self, now: Time, mut span: Time, section_ns: Time, gap_ns: Time) {
        if let State::Inside { left, .. } = &mut self.state {
            if span < *left {
                *left -= span;
                return;
            }
            span -= *left;
            self.state = State::Outside;
            self.written = true;
        }
        if self.ending {
            return;
        }
        if span > FORGOTTEN * section_ns.min(gap_ns) {
            self.written = true;
            if self.random.below(section_ns + gap_ns) < section_ns {
                let ago = self.random.exponential(section_ns).min(span);
                let left = self.draw_left(section_ns);
                self.state = State::Inside { began: now - ago, left };
            }
            return;
        }
        loop {
            let gap = self.random.exponential(gap_ns);
            if gap >= span {
                return;
            }
            span -= gap;
            self.written = true;
            let section = self.random.exponential(section_ns);
            if section > span {
                self.state = State::Inside { began: now - span, left: section - span };
                return;
            }
            span -= section;
        }
    }

    /// How long it has to run until it leaves its section; none if it is in none, or leaves it by
    /// itself.
    pub(super) fn leaves_in(&self) -> Option<Time> {
        match self.state {
            State::Inside { left, .. } if self.running && left != Time::MAX => Some(left),
            _ => None,
        }
    }

    /// Its word, as of the last draw.
    pub(super) fn word(&self, announced: &Announced) -> u64 {
        match self.state {
            State::Outside => word::QUIESCENT,
            State::Inside { began, .. } => announced.word_at(began),
        }
    }

    /// Whether it is in a section that had begun before `then`, as of the last draw.
    pub(super) fn is_inside_since_before(&self, then: Time) -> bool {
        matches!(self.state, State::Inside { began, .. } if began < then)
    }

    /// Whether its line has to come from another cache; it does not the next time.
    pub(super) fn take_written(&mut self) -> bool {
        std::mem::take(&mut self.written)
    }

    pub(super) const fn is_qsbr(&self) -> bool {
        matches!(self.kind, Kind::Qsbr { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A look after a long time, and looks all the time, find as many inside; and of what is left
    /// of a section the mean is a section.
    #[test]
    fn a_lazy_draw_is_the_process_that_was_simulated() {
        let kind = Kind::Sections { section_ns: 300, gap_ns: 700 };
        for step in [40, 900, 60_000] {
            let mut reader = Reader::new(kind, Random::new(step));
            reader.resume(0);
            let (looks, mut inside, mut left_sum, mut old) = (240_000, 0_u64, 0, 0);
            for look in 1..=looks {
                let now = look * step;
                reader.advance(now);
                if let Some(left) = reader.leaves_in() {
                    inside += 1;
                    left_sum += left;
                    old += u64::from(reader.is_inside_since_before(now.saturating_sub(300)));
                }
            }
            let share = inside * 1_000 / looks;
            assert!((290..=310).contains(&share), "{share} of 1,000 looks {step} apart");
            let mean = left_sum / inside;
            assert!((285..=315).contains(&mean), "{mean} left after {step}");
            // e^-1 of the sections have gone on for longer than the mean.
            let old = old * 1_000 / inside;
            assert!((350..=386).contains(&old), "{old} of 1,000 are old at {step}");
        }
    }

    #[test]
    fn a_reader_without_a_cpu_stays_what_it_is() {
        let kind = Kind::Sections { section_ns: 500, gap_ns: 500 };
        let mut reader = Reader::new(kind, Random::new(1));
        reader.resume(0);
        let mut now = 0;
        while reader.leaves_in().is_none() {
            now += 100;
            reader.advance(now);
        }
        reader.pause(now);
        let state = reader.state;
        reader.advance(now + 1_000_000);
        assert_eq!(reader.state, state);
        assert_eq!(reader.leaves_in(), None, "it does not run");
    }

    #[test]
    fn a_spell_ends_outside_and_a_qsbr_reader_offline() {
        for kind in [Kind::Sections { section_ns: 900, gap_ns: 100 }, Kind::Qsbr { turn_ns: 700 }] {
            let mut reader = Reader::new(kind, Random::new(3));
            reader.resume(0);
            reader.begin_spell(0);
            let left = reader.end_spell(12_345);
            reader.advance(12_345 + left);
            assert_eq!(reader.state, State::Outside);
            reader.advance(99_999);
            assert_eq!(reader.state, State::Outside);
        }
    }
}
