//! One row of a replay: a published figure next to the model's, and how far the model's inputs
//! leave it free to fail.
//!
//! If the inputs determine a model's number, it agrees with the publication even if the model's
//! mechanisms are wrong. So each row says how much of its number the inputs determine
//! ([`Freedom`]). If that is so much that the number could not leave the band even without the
//! mechanism ([`Row::DIFFERENCE_BELOW`]), the row compares the rest ([`Row::is_difference`]): not
//! 22.95 with 22.92, but 0.48 with 0.45.

/// One published figure, or one published statement, beside what the model gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it was published, as in `usenix2003.table3`.
    pub source: &'static str,
    /// Which of its figures: `rcu-sched ms_per_iteration`.
    pub figure: String,
    /// What was published and what the model gives.
    pub finding: Finding,
    /// How the model's number came about.
    pub role: Role,
    /// How far the inputs of the model leave the row free to fail.
    pub freedom: Freedom,
    /// What brings the number about, in a line; for what is not modelled, why not.
    pub mechanism: String,
}

/// What was published and what the model gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A number.
    Number {
        /// As published.
        published: f64,
        /// As the model gives it, in the same unit; `None` if it is not modelled.
        ours: Option<f64>,
        /// The unit of both: `s`, `ms`, `us`, `ns`, `%`, `1/s`, `x`.
        unit: &'static str,
    },
    /// A statement: an ordering, an order of magnitude, a limit.
    Statement {
        /// As published.
        published: String,
        /// What the model gives, in words with numbers; empty if it is not modelled.
        ours: String,
        /// Whether what the model gives agrees.
        holds: bool,
    },
}

/// How a number of the model came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// A parameter of the model was chosen so that this comes out.
    Fitted,
    /// It follows from parameters that were chosen without it.
    Predicted,
    /// The model was given it.
    Input,
    /// The model has nothing to say about it.
    NotModelled,
}

/// How far the inputs of the model leave a row free to fail.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Freedom {
    /// The inputs fix none of it.
    Free,
    /// The inputs fix this much of the model's number, in its unit, whatever the mechanism does.
    Beyond {
        /// What the inputs fix.
        given: f64,
        /// By how much two runs of what was published differ, in the same unit: a smaller
        /// difference from the published figure is no miss. 0 if that was not published.
        spread: f64,
    },
    /// The same, where only what is beyond is compared, however much that is.
    Added {
        /// What the inputs fix.
        given: f64,
        /// By how much two runs of what was published differ.
        spread: f64,
    },
    /// As [`Self::Beyond`], and it cannot fail: an engine that costs nothing passes as well.
    Bound {
        /// What the inputs fix.
        given: f64,
        /// By how much two runs of what was published differ.
        spread: f64,
    },
    /// It cannot fail: it is an input or fitted, it follows from what is, or an engine that costs
    /// nothing passes as well.
    None,
}

impl Freedom {
    /// What the inputs fix, and the published spread.
    const fn given(self) -> Option<(f64, f64)> {
        match self {
            Self::Beyond { given, spread }
            | Self::Added { given, spread }
            | Self::Bound { given, spread } => Some((given, spread)),
            Self::Free | Self::None => None,
        }
    }
}

/// How a row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fit {
    /// The ratio of ours to the published is within [`Row::FIT`], or the statement holds.
    Fits,
    /// It is not, or it does not.
    Misses,
    /// There is nothing to compare: an input, or not modelled.
    NotCompared,
}

impl Row {
    /// From where to where the ratio of our figure to the published one fits.
    pub const FIT: (f64, f64) = (0.75, 1.33);

    /// A number of which the inputs leave less than this share free could not leave the band by
    /// the mechanism's absence: what is left of it is compared.
    pub const DIFFERENCE_BELOW: f64 = 1.0 - Self::FIT.0;

    /// The share of our number that the inputs leave free, from 0 to 1; `None` where nothing is
    /// compared.
    pub fn free_share(&self) -> Option<f64> {
        if matches!(self.role, Role::Input | Role::NotModelled) {
            return None;
        }
        let is_bound = matches!(self.freedom, Freedom::Bound { .. } | Freedom::None);
        Some(if is_bound || self.role == Role::Fitted { 0.0 } else { self.share_beyond() })
    }

    /// The share of our number that is beyond what the inputs fix.
    fn share_beyond(&self) -> f64 {
        let given = self.freedom.given();
        let (Some((given, _)), Finding::Number { ours: Some(ours), .. }) = (given, &self.finding)
        else {
            return 1.0;
        };
        let size = ours.abs().max(given.abs());
        let free = if size == 0.0 { 0.0 } else { (ours - given).abs() / size };
        free.min(1.0)
    }

    /// What the row compares: the published number and ours, both without what the inputs fix if
    /// the row [is a difference](Self::is_difference). `None` for a statement, and where there is
    /// nothing to compare.
    pub fn compared(&self) -> Option<(f64, f64)> {
        match self.finding {
            Finding::Number { published, ours: Some(ours), .. }
                if !matches!(self.role, Role::Input | Role::NotModelled) =>
            {
                let given = self.freedom.given().filter(|_| self.is_difference());
                let given = given.map_or(0.0, |(given, _)| given);
                Some((published - given, ours - given))
            }
            _ => None,
        }
    }

    /// Whether only what is beyond the inputs is compared: they fix too much of the number, or it
    /// is [always](Freedom::Added) so.
    pub fn is_difference(&self) -> bool {
        let is_added = matches!(self.freedom, Freedom::Added { .. });
        let is_fixed = self.share_beyond() < Self::DIFFERENCE_BELOW;
        self.freedom.given().is_some() && (is_added || is_fixed)
    }

    /// The published spread, if the row is a difference and agrees to within it.
    pub fn within_spread(&self) -> Option<f64> {
        let (_, spread) = self.freedom.given()?;
        let (published, ours) = self.compared().filter(|_| self.is_difference())?;
        ((ours - published).abs() <= spread).then_some(spread)
    }

    /// Ours over the published, of [what is compared](Self::compared), if that is not 0 and means
    /// more than the [spread](Self::within_spread).
    pub fn ratio(&self) -> Option<f64> {
        let (published, ours) = self.compared().filter(|(published, _)| *published != 0.0)?;
        self.within_spread().is_none().then_some(ours / published)
    }

    /// Whether a ratio fits.
    pub(super) fn in_band(ratio: f64) -> bool {
        (Self::FIT.0..=Self::FIT.1).contains(&ratio)
    }

    /// How the row compares. A difference fits too if it is within the published spread.
    pub fn fit(&self) -> Fit {
        if matches!(self.role, Role::Input | Role::NotModelled) {
            return Fit::NotCompared;
        }
        let fits = match &self.finding {
            Finding::Statement { holds, .. } => *holds,
            Finding::Number { .. } => {
                self.within_spread().is_some() || self.ratio().is_some_and(Self::in_band)
            }
        };
        if fits { Fit::Fits } else { Fit::Misses }
    }

    /// The same row, of whose number the inputs fix `given`; see [`Freedom::Beyond`].
    #[must_use]
    pub fn beyond(self, given: f64, spread: f64) -> Self {
        Self { freedom: Freedom::Beyond { given, spread }, ..self }
    }

    /// A number, and that of the model: what it gives or is given, or `None`.
    pub fn number(
        source: &'static str,
        figure: impl Into<String>,
        (published, ours, unit): (f64, impl Into<Option<f64>>, &'static str),
        role: Role,
        mechanism: impl Into<String>,
    ) -> Self {
        let finding = Finding::Number { published, ours: ours.into(), unit };
        let freedom = if role == Role::Predicted { Freedom::Free } else { Freedom::None };
        Self { source, figure: figure.into(), finding, role, freedom, mechanism: mechanism.into() }
    }

    /// A statement, and whether it holds in the model: `ours` is what was found, with its numbers.
    pub fn statement(
        source: &'static str,
        figure: impl Into<String>,
        published: impl Into<String>,
        (ours, holds): (String, bool),
        mechanism: impl Into<String>,
    ) -> Self {
        Self {
            source,
            figure: figure.into(),
            finding: Finding::Statement { published: published.into(), ours, holds },
            role: Role::Predicted,
            freedom: Freedom::Free,
            mechanism: mechanism.into(),
        }
    }
}

/// The root mean square of the logarithms of the ratios of the numbers that are predicted, as a
/// factor: 1 if all agree, 1.2 if they are typically 20 % off. `None` without any.
///
/// What is not [free](Row::free_share) at all is left out; a ratio that is 0 or less, as of a
/// difference whose sign is wrong, counts as off by a factor of 10.
pub fn typical_factor<'a>(rows: impl IntoIterator<Item = &'a Row>) -> Option<f64> {
    const WORST: f64 = 10.0;
    let is_free = |row: &&Row| {
        row.role == Role::Predicted && row.free_share().is_some_and(|share| share > 0.0)
    };
    let (mut sum, mut count) = (0.0, 0);
    for ratio in rows.into_iter().filter(is_free).filter_map(Row::ratio) {
        let logarithm = if ratio > 0.0 { ratio.ln() } else { WORST.ln() };
        sum += logarithm.abs().min(WORST.ln()).powi(2);
        count += 1;
    }
    (count != 0).then(|| (sum / f64::from(count)).sqrt().exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted(published: f64, ours: f64) -> Row {
        Row::number("s", "f", (published, ours, "s"), Role::Predicted, "m")
    }

    #[test]
    fn a_number_fits_within_a_quarter_below_and_a_third_above() {
        let fit = |ours| predicted(100.0, ours).fit();
        assert_eq!([fit(75.0), fit(100.0), fit(133.0)], [Fit::Fits; 3]);
        assert_eq!([fit(74.9), fit(133.1), fit(f64::NAN)], [Fit::Misses; 3]);
    }

    #[test]
    fn what_is_given_or_left_out_is_not_compared() {
        let row = Row::number("s", "f", (1.0, 1.0, "s"), Role::Input, "p");
        assert_eq!((row.fit(), row.ratio(), row.free_share()), (Fit::NotCompared, None, None));
        let row = Row::number("s", "f", (1.0, None, "s"), Role::NotModelled, "r");
        assert_eq!((row.fit(), row.ratio(), row.free_share()), (Fit::NotCompared, None, None));
        let row = predicted(0.0, 1.0);
        assert_eq!((row.fit(), row.ratio()), (Fit::Misses, None), "nothing is a multiple of 0");
    }

    #[test]
    fn a_statement_holds_or_misses() {
        let fit = |holds| Row::statement("s", "f", "a < b", ("1 < 2".into(), holds), "m").fit();
        assert_eq!((fit(true), fit(false)), (Fit::Fits, Fit::Misses));
    }

    #[test]
    fn what_the_inputs_fix_is_not_counted_as_agreement() {
        // As a ratio 100 against 110 fits. The inputs fix 100: the mechanism gives 10 of 0.
        let row = predicted(100.0, 110.0);
        assert_eq!((row.fit(), row.free_share()), (Fit::Fits, Some(1.0)));
        let row = row.beyond(100.0, 0.0);
        assert!(row.is_difference() && row.free_share().unwrap() < 0.1);
        assert_eq!((row.compared(), row.fit()), (Some((0.0, 10.0)), Fit::Misses));
        // A tenth beyond what is fixed against a tenth: that agrees.
        assert_eq!(predicted(111.0, 110.0).beyond(100.0, 0.0).fit(), Fit::Fits);
        // The wrong sign does not, unless the published spread is as large.
        assert_eq!(predicted(99.0, 101.0).beyond(100.0, 1.9).fit(), Fit::Misses);
        let row = predicted(99.0, 101.0).beyond(100.0, 2.1);
        assert_eq!((row.fit(), row.ratio(), row.within_spread()), (Fit::Fits, None, Some(2.1)));
    }

    #[test]
    fn a_number_that_can_leave_the_band_stays_a_ratio() {
        let row = predicted(100.0, 110.0).beyond(60.0, 0.0);
        assert!(!row.is_difference());
        assert_eq!(row.compared(), Some((100.0, 110.0)));
        let share = row.free_share().unwrap();
        assert!((share - 50.0 / 110.0).abs() < 1e-12, "{share}");
        // What is added is compared alone: 50 against 40 fits, and 56 does not.
        let added = |ours| {
            let freedom = Freedom::Added { given: 60.0, spread: 0.0 };
            Row { freedom, ..predicted(100.0, ours) }
        };
        assert_eq!((added(110.0).compared(), added(110.0).fit()), (Some((40.0, 50.0)), Fit::Fits));
        assert_eq!(added(116.0).fit(), Fit::Misses);
        // What is fixed may be more than the number.
        assert_eq!(predicted(1.0, 1.0).beyond(4.0, 0.0).free_share(), Some(0.75));
        assert_eq!(predicted(1.0, 0.0).beyond(0.0, 0.0).free_share(), Some(0.0));
    }

    #[test]
    fn fitted_rows_and_bound_ones_cannot_fail() {
        let fitted = Row::number("s", "f", (1.0, 1.0, "s"), Role::Fitted, "m");
        assert_eq!(fitted.free_share(), Some(0.0));
        let bound = Row { freedom: Freedom::None, ..predicted(1.0, 1.0) };
        assert_eq!(bound.free_share(), Some(0.0));
    }

    /// What is fitted, or passed by an engine that costs nothing, is compared beyond what is given
    /// all the same: so it misses when its mechanism is removed.
    #[test]
    fn what_cannot_fail_is_compared_as_a_difference_too() {
        let number = |ours| predicted(82.0, ours).beyond(77.5, 0.4);
        let fitted = |ours| Row { role: Role::Fitted, ..number(ours) };
        assert_eq!((fitted(81.9).fit(), fitted(77.7).fit()), (Fit::Fits, Fit::Misses));
        assert_eq!(fitted(81.9).free_share(), Some(0.0));
        let bound = Row { freedom: Freedom::Bound { given: 77.5, spread: 0.4 }, ..number(77.6) };
        assert_eq!((bound.fit(), bound.free_share()), (Fit::Misses, Some(0.0)));
    }

    #[test]
    fn the_typical_factor_is_of_what_is_free_to_fail() {
        assert_eq!(typical_factor(&[]), None);
        let fitted = Row::number("s", "f", (1.0, 9.0, "s"), Role::Fitted, "m");
        assert_eq!(typical_factor([&fitted]), None);
        let rows = [predicted(1.0, 2.0), predicted(2.0, 1.0), fitted];
        assert!((typical_factor(&rows).unwrap() - 2.0).abs() < 1e-12);
        let wrong = [predicted(100.0, 110.0).beyond(101.0, 0.0)];
        assert!((typical_factor(&wrong).unwrap() - 10.0).abs() < 1e-9, "-1 against 9");
    }
}
