//! `rcu simulate --published --vary`: which rows turn if an estimate of a model is another, and
//! whether a row misses when the mechanism is removed that is said to bring it about.
//!
//! What was fitted is not fitted anew. A row that fits without its mechanism makes the exit code 1;
//! one that misses with the mechanism as well is not brought about by it, and is no row that turns.

use serde_json::{Value, json};
use simulate::replay::{Role, Row, Variation};

use crate::output::{self, Output};

/// What a variation came to.
pub(super) struct Varied {
    what: String,
    /// The rows that fit and did not, or did and do not.
    turned: Vec<Row>,
    /// The row that had to miss and fits.
    unmoved: Option<&'static str>,
}

impl Varied {
    /// What it came to, given what the same replay gives as it is.
    pub(super) fn new(variation: &Variation, varied: Vec<Row>, usual: &[Row]) -> Varied {
        let unmoved = variation.must_miss.filter(|_| !variation.misses(&varied));
        let has_turned = |row: &Row| {
            let same = |usual: &&Row| usual.source == row.source && usual.figure == row.figure;
            usual.iter().find(same).is_some_and(|usual| usual.fit() != row.fit())
        };
        let turned = varied.into_iter().filter(has_turned).collect();
        Varied { what: variation.what.clone(), turned, unmoved }
    }

    /// What is wrong with it.
    pub(super) fn fault(&self) -> Option<String> {
        self.unmoved.map(|figure| format!("{}: {figure} fits all the same", self.what))
    }

    /// It as JSON has it.
    pub(super) fn out(&self) -> Value {
        json!({
            "what": self.what,
            "turned": self.turned.iter().map(row_out).collect::<Vec<_>>(),
            "unmoved": self.unmoved,
        })
    }
}

fn row_out(row: &Row) -> Value {
    json!({
        "source": row.source,
        "figure": row.figure,
        "verdict": super::published::verdict(row).0,
    })
}

/// Prints a line for each, with the rows that turn.
pub(super) fn print(varied: &[Varied], output: &mut Output) {
    let line = |one: &Varied| {
        let turned = one.turned.iter().map(|row| {
            let fitted = if row.role == Role::Fitted { " (fitted)" } else { "" };
            let verdict = super::published::verdict(row).0;
            format!("{} {}{fitted}: {verdict}", row.source, row.figure)
        });
        [one.what.clone(), turned.collect::<Vec<_>>().join("\n")]
    };
    output.heading("What turns with another estimate, or without what a paper names");
    output.table(output::table(&["changed", "rows that turn"], [], varied.iter().map(line)));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(figure: &str, ours: f64) -> Row {
        Row::number("s.t", figure, (1.0, ours, "s"), Role::Predicted, "m")
    }

    fn varied(must_miss: Option<&'static str>, ours: f64) -> Varied {
        let variation = Variation { what: "w".into(), must_miss, rows: Box::new(Vec::new) };
        let usual = [row("one", 1.0), row("two", 1.0)];
        Varied::new(&variation, vec![row("one", ours), row("two", 1.1)], &usual)
    }

    #[test]
    fn a_row_that_turns_is_named_and_one_that_does_not_move_is_a_fault() {
        let one = varied(Some("one"), 2.0);
        assert_eq!(one.turned, [row("one", 2.0)]);
        assert_eq!(one.fault(), None);
        let unmoved = varied(Some("one"), 1.2);
        assert_eq!(unmoved.turned, []);
        assert_eq!(unmoved.fault().as_deref(), Some("w: one fits all the same"));
        assert_eq!(varied(None, 1.2).fault(), None, "an estimate may decide nothing");
        assert_eq!(one.out()["turned"][0]["verdict"], "does not fit");
    }
}
