//! Figures with their intervals, one a row over a common axis: what a change costs, what an
//! operation takes.

use std::fmt::Display;

use super::{BAR, LETTER, LETTERS, NAME_LETTERS, WIDTH};
use super::{dot, figure, labels, room, round_step, svg};
use crate::html::Markup;
use crate::output::shortened;

/// One row: a value, its interval, and what else is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Interval {
    pub(crate) name: String,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// The figure that was published, a hollow dot.
    pub(crate) published: Option<f64>,
    /// The value as it is written.
    pub(crate) text: String,
    /// Its colour: the accent's is that of ours.
    pub(crate) class: &'static str,
}

impl Interval {
    /// A value with the ends of its interval, and how it is written.
    pub(crate) fn of(
        name: impl Into<String>,
        ours: bool,
        figures: impl Into<[f64; 3]>,
        text: String,
    ) -> Interval {
        let [value, low, high] = figures.into();
        let class = if ours { "ours" } else { "other" };
        Interval { name: name.into(), value, low, high, published: None, text, class }
    }
}

/// The axis that all rows share.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// What is shown, with its unit.
    pub(crate) title: String,
    pub(crate) scale: Scale,
    /// A value as it is written at its mark.
    pub(crate) label: fn(f64) -> String,
    /// Values with a line of their own, such as a threshold.
    pub(crate) guides: Vec<f64>,
}

/// How values become places.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear,
    /// With a mark at each power of ten; of values above 0.
    Logarithmic,
    /// From 0 on, with a bar up to the value; of values that are not below 0.
    Bars,
    /// Of spans: a bar from the low end to the value, and a grey one from there to the high end.
    Spans,
}

impl Axis {
    /// Without lines of its own.
    pub(crate) fn new(title: impl Into<String>, scale: Scale, label: fn(f64) -> String) -> Axis {
        Axis { title: title.into(), scale, label, guides: Vec::new() }
    }

    /// The marks between which these values lie, and the guides.
    pub(super) fn marks(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let values = values.chain(self.guides.iter().copied());
        let values: Vec<f64> = values.filter(|value| self.scale.has(*value)).collect();
        let end = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of);
        let (Some(least), Some(most)) = (end(f64::min), end(f64::max)) else { return Vec::new() };
        self.scale.marks(if self.scale == Scale::Bars { 0.0 } else { least }, most)
    }
}

impl Scale {
    /// The scale of bars on which all of these values can be told apart.
    pub(crate) fn for_values(values: impl Iterator<Item = f64> + Clone) -> Scale {
        const FACTOR: f64 = 30.0;
        let least = values.clone().fold(f64::INFINITY, f64::min);
        let most = values.fold(0.0, f64::max);
        if least > 0.0 && most > FACTOR * least { Scale::Logarithmic } else { Scale::Bars }
    }

    /// Whether a value has a place.
    pub(super) fn has(self, value: f64) -> bool {
        value.is_finite() && (self != Scale::Logarithmic || value > 0.0)
    }

    /// Where a value stands between the first mark and the last, from 0 to 1.
    pub(crate) fn share(self, marks: &[f64], value: f64) -> f64 {
        let (Some(&first), Some(&last)) = (marks.first(), marks.last()) else { return 0.0 };
        let [first, last, at] = [first, last, value].map(|value| match self {
            Scale::Logarithmic => value.max(f64::MIN_POSITIVE).log10(),
            _ => value,
        });
        ((at - first) / (last - first)).clamp(0.0, 1.0)
    }

    /// The marks, from the first to the last: all values lie between them.
    fn marks(self, least: f64, most: f64) -> Vec<f64> {
        if self == Scale::Logarithmic {
            let (first, last) = (least.log10().floor() as i32, most.log10().ceil() as i32);
            return (first..=last.max(first + 1)).map(|power| 10_f64.powi(power)).collect();
        }
        let step = round_step((most - least) / 5.0);
        let (first, last) = ((least / step).floor() as i64, (most / step).ceil() as i64);
        (first..=last.max(first + 1)).map(|mark| mark as f64 * step).collect()
    }
}

/// A plot of rows over an axis, in a picture or in a terminal: how wide it is there, that says.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: String,
    pub(crate) axis: Axis,
    /// The first is the lowest, and the last the highest.
    pub(crate) marks: Vec<f64>,
    pub(crate) rows: Vec<Interval>,
    /// From where to where it is in a picture.
    sides: [f64; 2],
    /// Names and figures stand above the rows there, and not beside them.
    above: bool,
}

/// Draws the rows below what they are. The pointer over one shows its figures.
pub(crate) fn intervals(title: &str, axis: Axis, rows: Vec<Interval>) -> Markup {
    let mut part = Markup::default();
    let Some(chart) = Chart::new(title, axis, rows) else { return part };
    let height = if chart.above { BAR + 18.0 } else { BAR };
    let bottom = height * chart.rows.len() as f64 + 4.0;
    svg(&mut part, title, [WIDTH, bottom + 38.0], |svg| {
        chart.scale(svg, bottom);
        for (number, row) in chart.rows.iter().enumerate() {
            chart.draw(svg, row, height * (number + 1) as f64 - 12.0);
        }
    });
    // One row alone says no more than its figure.
    part.chart = (chart.rows.len() > 1).then_some(chart);
    part
}

impl Chart {
    /// Nothing if no row has a place: what could not be measured has none.
    pub(crate) fn new(title: &str, axis: Axis, mut rows: Vec<Interval>) -> Option<Chart> {
        rows.retain(|row| row.value.is_finite());
        let figures = |row: &Interval| [row.value, row.low, row.high];
        let values = rows.iter().flat_map(|row| figures(row).into_iter().chain(row.published));
        let (title, marks) = (title.to_owned(), axis.marks(values));
        let sides = [16.0, WIDTH - 30.0];
        let mut chart = Chart { title, axis, marks, rows, sides, above: true };
        let [name, text] = chart.letters();
        if name <= NAME_LETTERS && name + text <= LETTERS / 2 {
            chart.above = false;
            chart.sides = [room(name), WIDTH - (16.0 + LETTER * text as f64)];
        }
        (!chart.marks.is_empty()).then_some(chart)
    }

    /// Where a value stands, from 0 to 1.
    pub(crate) fn share(&self, value: f64) -> f64 {
        self.axis.scale.share(&self.marks, value)
    }

    /// The letters of the longest name, and of the longest figure.
    pub(crate) fn letters(&self) -> [usize; 2] {
        let longest = |of: fn(&Interval) -> &str| {
            self.rows.iter().map(|row| of(row).chars().count()).max().unwrap_or(0)
        };
        [longest(|row| &row.name), longest(|row| &row.text)]
    }

    fn x(&self, value: f64) -> f64 {
        self.sides[0] + (self.sides[1] - self.sides[0]) * self.share(value)
    }

    /// Marks with their labels.
    fn scale(&self, svg: &mut Markup, bottom: f64) {
        let Chart { axis, marks, sides: [left, right], .. } = self;
        let line = |svg: &mut Markup, class: &str, value: f64| {
            let at = figure(self.x(value));
            svg.line(class, [&at, &at, &"0", &bottom]);
        };
        marks.iter().for_each(|mark| line(svg, "grid", *mark));
        labels(svg, bottom + 16.0, marks.iter().map(|&mark| (self.x(mark), (axis.label)(mark))));
        axis.guides.iter().for_each(|guide| line(svg, "guide", *guide));
        let centre = figure((left + right) / 2.0);
        svg.label(Some("scale"), centre, bottom + 33.0, Some("middle"), &axis.title);
    }

    fn draw(&self, svg: &mut Markup, row: &Interval, middle: f64) {
        let (class, label, [left, right]) = (row.class, self.axis.label, self.sides);
        svg.element("g", &[], |group| {
            let Interval { name, text, low, high, .. } = row;
            let interval = (low != high).then(|| format!("{} to {}", label(*low), label(*high)));
            let published = row.published.map(|value| format!("published: {}", label(value)));
            let known: Vec<_> = interval.into_iter().chain(published).collect();
            let known = match &known[..] {
                [] => String::new(),
                known => format!(" ({})", known.join("; ")),
            };
            group.leaf("title", &[], format_args!("{name}: {text}{known}"));
            if self.above {
                let name = shortened(name, LETTERS / 2);
                let text = shortened(text, LETTERS - name.chars().count() - 1);
                group.label(None, "4", middle - 13.0, None, name);
                group.label(None, WIDTH - 4.0, middle - 13.0, Some("end"), text);
            } else {
                group.label(None, left - 8.0, middle + 4.0, Some("end"), name);
                group.label(None, right + 10.0, middle + 4.0, None, text);
            }
            let [low, value, high] = [row.low, row.value, row.high].map(|at| self.x(at));
            match self.axis.scale {
                Scale::Bars => bar(group, class, middle, [left, value.max(left + 1.0)]),
                Scale::Spans => {
                    bar(group, class, middle, [low, value]);
                    return bar(group, "rest", middle, [value, high]);
                }
                _ => dot(group, class, [value, middle], "4.5", None),
            }
            if let Some(published) = row.published {
                dot(group, "other hollow", [self.x(published), middle], "4.5", None);
            }
            if row.low == row.high {
                return;
            }
            let ends = [low, high].map(figure);
            group.line("whisker", [&ends[0], &ends[1], &middle, &middle]);
            for end in &ends {
                group.line("whisker", [end, end, &(middle - 4.0), &(middle + 4.0)]);
            }
        });
    }
}

/// A bar of a row.
fn bar(svg: &mut Markup, class: &str, middle: f64, [from, to]: [f64; 2]) {
    let (from, top, width) = (figure(from), middle - 8.0, figure(to - from));
    let place: [&dyn Display; 4] = [&from, &top, &width, &"16"];
    svg.rect(&[("class", &class), ("rx", &"2")], place);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::attribute;

    #[test]
    fn marks_enclose_all_values() {
        assert_eq!(Scale::Linear.marks(-3.0, 11.0), [-5.0, 0.0, 5.0, 10.0, 15.0]);
        assert_eq!(Scale::Linear.marks(0.0, 0.1), [0.0, 0.02, 0.04, 0.06, 0.08, 0.1]);
        assert_eq!(Scale::Linear.marks(4.0, 4.0).len(), 2, "one value has an axis, too");
        assert_eq!(Scale::Logarithmic.marks(0.3, 40.0), [0.1, 1.0, 10.0, 100.0]);
        let scale = |values: [f64; 2]| Scale::for_values(values.into_iter());
        assert_eq!(scale([1.0, 20.0]), Scale::Bars);
        assert_eq!(scale([1.0, 200.0]), Scale::Logarithmic);
        assert_eq!(scale([0.0, 200.0]), Scale::Bars);
    }

    #[test]
    fn an_interval_without_an_end_stays_inside_and_says_its_figures() {
        let row = Interval {
            published: Some(-1.0),
            ..Interval::of("<a>", true, [1.0, -2.0, f64::INFINITY], "+1 %".to_owned())
        };
        let mut axis = Axis::new("change, %", Scale::Linear, |value| format!("{value}"));
        axis.guides.push(2.0);
        let unknown = Interval { value: f64::NAN, ..row.clone() };
        let svg = intervals("t", axis, vec![row, unknown]).into_string();
        assert!(svg.contains("<title>&lt;a&gt;: +1 % (-2 to inf; published: -1)</title>"), "{svg}");
        assert!(svg.contains("change, %") && svg.contains("class=\"guide\""), "{svg}");
        assert!(!svg.contains("NaN"), "{svg}");
        let are_in = |name, most| attribute(&svg, name).iter().all(|at| (0.0..=most).contains(at));
        for name in ["x1", "x2", "cx"] {
            assert!(are_in(name, WIDTH), "{name}: {svg}");
        }
        assert!(are_in("cy", BAR), "in the only row: {svg}");
    }

    #[test]
    fn a_single_figure_has_no_whiskers_and_a_long_word_stays_inside() {
        let row = |high| Interval::of("a", true, [1.0, 1.0, high], "1 s".to_owned());
        let axis = Axis::new("s", Scale::Bars, |value| format!("{value}"));
        let title = format!("t; {}", "x".repeat(99));
        let single = intervals(&title, axis.clone(), vec![row(1.0); 2]);
        let chart = single.chart.clone().unwrap();
        assert_eq!((chart.rows.len(), chart.axis.scale), (2, Scale::Bars));
        let svg = single.into_string();
        assert!(svg.contains("<title>a: 1 s</title>") && !svg.contains("whisker"), "{svg}");
        assert!(svg.contains(&format!(">{}…</text>", "x".repeat(LETTERS - 1))), "{svg}");
        let one = intervals("t", axis, vec![row(2.0)]);
        assert!(one.chart.is_none(), "one row alone");
        let svg = one.into_string();
        assert!(svg.contains("(1 to 2)</title>") && svg.contains("whisker"), "{svg}");
    }

    #[test]
    fn a_bar_begins_at_0_its_text_is_escaped_and_places_are_numbers() {
        let bar = |value| Interval::of("<b>&", false, [value; 3], String::new());
        let axis = Axis::new("ns", Scale::Bars, |value| format!("{value}"));
        let svg = intervals("t", axis, vec![bar(1.0), bar(f64::NAN)]).into_string();
        assert!(svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>"), "{svg}");
        assert!(!svg.contains("NaN"), "what could not be measured has no place: {svg}");
        assert!(svg.contains("<rect class=\"other\"") && svg.contains(">0</text>"), "{svg}");
    }
}
