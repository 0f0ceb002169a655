//! What a terminal draws of a plot: a line of text for each row or curve, with shares of the axis.

use super::{Axis, Interval, Line, Scale};

/// A plot without a place for its marks: how wide it is, the terminal says.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    /// What is shown, with its unit, and the values at both ends.
    pub(crate) axis: String,
    /// The name of each row, what is drawn of it, and its figure.
    pub(crate) rows: Vec<(String, Drawn, String)>,
}

/// Places of one row, from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Drawn {
    /// From 0 to the value.
    Bar(f64),
    /// The value between its ends.
    Interval([f64; 3]),
    /// Values over settings, as far as they are known.
    Curve(Vec<Option<f64>>),
}

impl Chart {
    pub(super) fn of_intervals(
        title: &str,
        axis: &Axis,
        marks: &[f64],
        rows: &[&Interval],
    ) -> Chart {
        let row = |row: &&Interval| {
            let places = [row.low, row.value, row.high].map(|at| axis.scale.share(marks, at));
            let is_bar = axis.scale == Scale::Bars;
            let drawn = if is_bar { Drawn::Bar(places[1]) } else { Drawn::Interval(places) };
            (row.name.clone(), drawn, row.text.clone())
        };
        Self::new(title, axis, marks, rows.iter().map(row).collect())
    }

    pub(super) fn of_lines(title: &str, axis: &Axis, marks: &[f64], lines: &[Line]) -> Chart {
        let row = |line: &Line| {
            let known = |value: &Option<f64>| value.filter(|value| axis.scale.has(*value));
            let place = |value: f64| axis.scale.share(marks, value);
            let places = line.values.iter().map(|value| known(value).map(place)).collect();
            let figures = line.values.iter().filter_map(known).map(axis.label);
            let text = figures.collect::<Vec<_>>().join(", ");
            (line.name.clone(), Drawn::Curve(places), text)
        };
        Self::new(title, axis, marks, lines.iter().map(row).collect())
    }

    fn new(title: &str, axis: &Axis, marks: &[f64], rows: Vec<(String, Drawn, String)>) -> Chart {
        let ends = [marks.first(), marks.last()]
            .map(|end| end.map_or(String::new(), |end| (axis.label)(*end)));
        let axis = format!("{}, from {} to {}", axis.title, ends[0], ends[1]);
        Chart { title: title.to_owned(), axis, rows }
    }
}
