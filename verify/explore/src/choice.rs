//! The choices inside a step, enumerated.
//!
//! A step that may go several ways (a load that may return several values, a fence that may reach
//! any reader next) asks [`Choice::choose`]. The explorer runs the step once for every answer, so
//! that a step reads as straight code.

/// The values chosen in a step, and how many there were to choose from.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    path: Vec<(usize, usize)>,
    asked: usize,
}

impl Choice {
    /// Repeats the choices of an earlier run.
    pub(crate) fn replay(answers: &[u8]) -> Self {
        let path = answers.iter().map(|answer| (usize::from(*answer), usize::MAX)).collect();
        Self { path, asked: 0 }
    }

    /// One of `0..options`; every one of them in some run.
    pub(crate) fn choose(&mut self, options: usize) -> usize {
        debug_assert!(options > 0, "a choice among nothing");
        if options == 1 {
            return 0;
        }
        if self.asked == self.path.len() {
            self.path.push((0, options));
        }
        let (answer, _) = self.path[self.asked];
        self.asked += 1;
        answer % options
    }

    /// One of the members of a set.
    pub(crate) fn one_of(&mut self, set: u8) -> usize {
        let which = self.choose(set.count_ones() as usize);
        let member = (0..8).filter(|member| set & 1 << member != 0).nth(which);
        member.expect("as many as there are to choose from")
    }

    /// The choices made, to [`replay`](Self::replay) them.
    pub(crate) fn answers(&self) -> Box<[u8]> {
        self.path.iter().map(|(answer, _)| *answer as u8).collect()
    }

    /// The choices of the next run; `None` after the last.
    pub(crate) fn next(mut self) -> Option<Self> {
        while let Some((answer, options)) = self.path.pop() {
            if answer + 1 < options {
                self.path.push((answer + 1, options));
                return Some(Self { path: self.path, asked: 0 });
            }
        }
        None
    }
}
