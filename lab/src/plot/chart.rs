//! What a terminal draws of a plot: a line of text for each row, with shares of the axis.

use super::{Axis, Interval, Scale};

/// A plot without a place for its marks: how wide it is, the terminal says.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    /// Up to its first semicolon: the rest is about marks that a terminal does not show.
    pub(crate) title: String,
    /// What is shown, with its unit, and the values at both ends.
    pub(crate) axis: String,
    /// The name of each row; where its low end, its value and its high end are, from 0 to 1; and
    /// its figure.
    pub(crate) rows: Vec<(String, [f64; 3], String)>,
    /// Whether there is a bar from 0 to each value, and not the value between its ends.
    pub(crate) bars: bool,
}

impl Chart {
    /// Of these rows; there are marks.
    pub(super) fn of(title: &str, axis: &Axis, marks: &[f64], rows: &[&Interval]) -> Chart {
        let row = |row: &&Interval| {
            let places = [row.low, row.value, row.high].map(|at| axis.scale.share(marks, at));
            (row.name.clone(), places, row.text.clone())
        };
        let [from, to] = [marks[0], marks[marks.len() - 1]].map(axis.label);
        let kind = if axis.scale == Scale::Logarithmic { ", logarithmic" } else { "" };
        Chart {
            title: title.split(';').next().unwrap_or_default().to_owned(),
            axis: format!("{}{kind}, from {from} to {to}", axis.title),
            rows: rows.iter().map(row).collect(),
            bars: axis.scale == Scale::Bars,
        }
    }
}
