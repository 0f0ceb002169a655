//! Plots as inline SVG. Colours are CSS variables of the page, so that light and dark both work;
//! every mark that has a colour also has a label.

mod intervals;

use crate::html::{Attribute, Markup};
pub(crate) use intervals::{Axis, Interval, Scale, intervals};

const WIDTH: f64 = 720.0;
/// A letter is about so wide.
const LETTER: f64 = 6.9;
/// A longer name leaves no room for the plot.
const NAME_LETTERS: usize = 50;
const BAR: f64 = 26.0;

/// One line of a plot over settings: a value, or none, for each.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) ours: bool,
}

/// Lines over settings, which stand at equal distances. Names are written at the right end, moved
/// apart where the lines end too close together, and each line has a dash pattern of its own. The
/// axis of settings is titled `over`; the pointer over a point shows its value on both.
pub(crate) fn lines(over: &str, axis: &Axis, settings: &[String], lines: &[Line]) -> Markup {
    const HEIGHT: f64 = 340.0;
    const TOP: f64 = 32.0;
    const LEFT: f64 = 64.0;
    const RIGHT: f64 = 160.0;
    const BASE: f64 = HEIGHT - 46.0;
    let marks = axis.marks(lines.iter().flat_map(|line| &line.values).flatten().copied());
    let y = |value: f64| BASE - (BASE - TOP) * axis.scale.share(&marks, value);
    let gaps = settings.len().saturating_sub(1).max(1) as f64;
    let x = |place: usize| LEFT + 24.0 + (WIDTH - LEFT - RIGHT - 48.0) * place as f64 / gaps;
    let mut part = Markup::default();
    svg(&mut part, &format!("{} by {over}", axis.title), [WIDTH, HEIGHT], |svg| {
        for &mark in &marks {
            let at = figure(y(mark));
            svg.line("grid", [&LEFT, &(WIDTH - RIGHT), &at, &at]);
            let below = figure(y(mark) + 4.0);
            svg.label(Some("scale"), LEFT - 6.0, below, Some("end"), (axis.label)(mark));
        }
        for (place, setting) in settings.iter().enumerate() {
            svg.label(Some("scale"), figure(x(place)), BASE + 20.0, Some("middle"), setting);
        }
        svg.label(Some("scale"), "4", "14", None, &axis.title);
        let centre = figure((LEFT + WIDTH - RIGHT) / 2.0);
        svg.label(Some("scale"), centre, HEIGHT - 8.0, Some("middle"), over);
        for (index, line) in lines.iter().enumerate() {
            let values = || {
                let values = line.values.iter().enumerate();
                let known = values.filter_map(|(place, value)| Some((place, (*value)?)));
                known.filter(|(_, value)| axis.scale.has(*value))
            };
            let points: Vec<(f64, f64)> = values().map(|(at, value)| (x(at), y(value))).collect();
            let class = series(index, line.ours);
            svg.empty("polyline", &[("class", &class), ("points", &joined(&points))]);
            for (place, value) in values() {
                let (name, setting) = (&line.name, &settings[place]);
                let says = format!("{name}, {setting}: {} {}", (axis.label)(value), axis.title);
                dot(svg, &class, [x(place), y(value)], "3.5", &says);
            }
        }
        for (index, label_y) in label_places(lines, y, BASE + 8.0) {
            let class = format!("{} name", series(index, lines[index].ours));
            let at = figure(label_y + 4.0);
            svg.label(Some(&class), WIDTH - RIGHT + 8.0, at, None, &lines[index].name);
        }
    });
    part
}

/// The room that names take on the left of a plot.
fn room<'a>(names: impl Iterator<Item = &'a str>) -> f64 {
    let letters = names.map(|name| name.chars().count()).max().unwrap_or(0);
    (LETTER * letters.min(NAME_LETTERS) as f64 + 12.0).max(90.0)
}

/// A point, which says its figures under the pointer.
fn dot(svg: &mut Markup, class: &str, [x, y]: [f64; 2], radius: &str, says: &str) {
    let (x, y) = (figure(x), figure(y));
    let place: [Attribute<'_>; 4] = [("class", &class), ("cx", &x), ("cy", &y), ("r", &radius)];
    svg.element("circle", &place, |circle| circle.leaf("title", &[], says));
}

/// A picture of this width and height.
fn svg(part: &mut Markup, title: &str, size: [f64; 2], draw: impl FnOnce(&mut Markup)) {
    let view_box = format!("0 0 {} {}", size[0], size[1]);
    let attributes: [Attribute<'_>; 3] =
        [("role", &"img"), ("aria-label", &title), ("viewBox", &view_box)];
    part.element("svg", &attributes, draw);
}

/// The classes of a line: its colour and dashes.
fn series(index: usize, ours: bool) -> String {
    let ours = if ours { " ours" } else { "" };
    format!("series s{}{ours}", index % 6)
}

/// Where the name of each line stands: beside its last value, but at least a line of text below
/// the name above it, and never below `lowest`.
fn label_places(lines: &[Line], y: impl Fn(f64) -> f64, lowest: f64) -> Vec<(usize, f64)> {
    const APART: f64 = 16.0;
    let mut places: Vec<(usize, f64)> = lines
        .iter()
        .enumerate()
        .filter_map(|(index, line)| {
            Some((index, y((*line.values.iter().flatten().last()?).max(0.0))))
        })
        .collect();
    places.sort_by(|a, b| a.1.total_cmp(&b.1));
    let mut above = f64::NEG_INFINITY;
    for (_, place) in &mut places {
        *place = place.max(above + APART);
        above = *place;
    }
    let mut below = lowest + APART;
    for (_, place) in places.iter_mut().rev() {
        *place = place.min(below - APART);
        below = *place;
    }
    places
}

/// A step of 1, 2 or 5 times a power of ten, at least this large.
fn round_step(least: f64) -> f64 {
    if least <= 0.0 || !least.is_finite() {
        return 1.0;
    }
    let power = 10_f64.powf(least.log10().floor());
    let fitting = [1.0, 2.0, 5.0, 10.0].into_iter().find(|step| step * power >= least * 0.999_999);
    fitting.unwrap_or(10.0) * power
}

fn joined(points: &[(f64, f64)]) -> String {
    points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect()
}

/// A coordinate with a tenth of a unit, which is less than a pixel.
fn figure(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::output::shortened;

    #[test]
    fn steps_are_round() {
        assert_eq!(round_step(0.7), 1.0);
        assert_eq!(round_step(13.0), 20.0);
        assert_eq!(round_step(20.0), 20.0);
        assert!((round_step(0.031) - 0.05).abs() < 1e-12);
        assert_eq!(round_step(0.0), 1.0);
    }

    #[test]
    fn names_at_the_ends_of_lines_do_not_overlap_and_stay_inside() {
        let line = |value| Line { name: String::new(), values: vec![Some(value)], ours: false };
        let lines: Vec<Line> = [0.0, 0.1, 0.2, 5.0].map(line).to_vec();
        let mut places: Vec<f64> = label_places(&lines, |value| 272.0 - value, 280.0)
            .into_iter()
            .map(|(_, y)| y)
            .collect();
        places.sort_by(f64::total_cmp);
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= 15.9), "{places:?}");
        assert!(places.iter().all(|&place| place <= 280.0), "{places:?}");
    }

    #[test]
    fn a_point_of_a_line_says_its_value_and_the_axes_their_units() {
        let line = Line { name: "a".to_owned(), values: vec![Some(1.5), None], ours: true };
        let settings = ["99 %", "50 %"].map(str::to_owned);
        let axis = Axis::new("million/s", Scale::Bars, bench::units::figures);
        let svg = lines("Share of reads", &axis, &settings, &[line]).into_string();
        assert!(svg.contains("<title>a, 99 %: 1.50 million/s</title>"), "{svg}");
        for axis in [">million/s</text>", ">Share of reads</text>"] {
            assert!(svg.contains(axis), "{axis} in {svg}");
        }
    }

    #[test]
    fn a_decade_is_as_high_as_the_next_and_nothing_has_no_place_among_them() {
        let values = [0.0, 2.0, 20.0, 200.0].map(Some).to_vec();
        let line = Line { name: "a".to_owned(), values, ours: true };
        let settings = ["1", "2", "4", "8"].map(str::to_owned);
        let axis = Axis::new("t", Scale::Logarithmic, |value| format!("{value}"));
        let svg = lines("CPUs", &axis, &settings, &[line]).into_string();
        let points = svg.split("points=\"").nth(1).unwrap().split('"').next().unwrap();
        let y: Vec<f64> =
            points.split(' ').filter_map(|at| at.split_once(',')?.1.parse().ok()).collect();
        assert_eq!(y.len(), 3, "{points}");
        assert!((2.0 * y[1] - y[0] - y[2]).abs() < 0.2, "{points}");
        assert!(svg.contains(">1000</text>") && !svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn a_name_without_room_is_shortened_and_the_plot_keeps_its_room() {
        let long = "x".repeat(200);
        assert_eq!(shortened(&long, NAME_LETTERS).chars().count(), NAME_LETTERS);
        assert!(room([&*long].into_iter()) < WIDTH - 290.0);
    }
}
