//! Plots as inline SVG, and as bars of a terminal. Colours are CSS variables of the page, so that
//! light and dark both work; every mark that has a colour also has a label.
//!
//! A picture is 480 units wide, with letters of 12 to 14: at 400 pixels they can be read.

mod intervals;

use crate::html::{Attribute, Markup};
use crate::output::{shortened, wrap};
pub(crate) use intervals::{Axis, Chart, Interval, Scale, intervals};

const WIDTH: f64 = 480.0;
/// A letter is about so wide.
const LETTER: f64 = 7.2;
/// Letters for which a line has room.
const LETTERS: usize = 64;
/// Longer names stand above their rows.
const NAME_LETTERS: usize = 22;
const BAR: f64 = 26.0;
/// Names at the ends of lines are at least so far apart.
const APART: f64 = 16.0;

/// One line of a plot over settings: a value, or none, for each.
#[derive(Clone, Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) values: Vec<Option<f64>>,
    pub(crate) ours: bool,
}

/// Lines over settings, under a title that says both axes.
pub(crate) fn lines(over: &str, axis: &Axis, settings: &[String], lines: &[Line]) -> Markup {
    curves(&format!("{} by {over}", axis.title), over, axis, settings, lines)
}

/// Lines over settings, which stand at equal distances. Names are written at the right end, moved
/// apart where the lines end too close together, and each line has a dash pattern of its own. The
/// axis of settings is titled `over`; the pointer over a point shows its value on both. A terminal
/// shows none of it.
pub(crate) fn curves(
    title: &str,
    over: &str,
    axis: &Axis,
    settings: &[String],
    lines: &[Line],
) -> Markup {
    const TOP: f64 = 28.0;
    const LEFT: f64 = 62.0;
    const KEY: f64 = 22.0;
    // All names have room.
    let height = (APART * lines.len() as f64 + 34.0).max(320.0);
    let base = height - 46.0;
    let marks = axis.marks(lines.iter().flat_map(|line| &line.values).flatten().copied());
    let share = |value: f64| axis.scale.share(&marks, value);
    let y = |value: f64| base - (base - TOP) * share(value);
    let gaps = settings.len().saturating_sub(1).max(1) as f64;
    let letters = lines.iter().map(|line| line.name.chars().count()).max().unwrap_or(0);
    let right = WIDTH - KEY - room(letters);
    let x = |place: usize| LEFT + 20.0 + (right - LEFT - 36.0) * place as f64 / gaps;
    let mut part = Markup::default();
    svg(&mut part, title, [WIDTH, height], |svg| {
        for &mark in &marks {
            let at = figure(y(mark));
            svg.line("grid", [&LEFT, &right, &at, &at]);
            let below = figure(y(mark) + 4.0);
            svg.label(Some("scale"), LEFT - 6.0, below, Some("end"), (axis.label)(mark));
        }
        labels(svg, base + 20.0, settings.iter().enumerate().map(|(at, name)| (x(at), name)));
        svg.label(Some("scale"), "4", "14", None, &axis.title);
        let centre = figure((LEFT + right) / 2.0);
        svg.label(Some("scale"), centre, height - 8.0, Some("middle"), over);
        for (index, line) in lines.iter().enumerate() {
            let values = || {
                let values = line.values.iter().enumerate();
                let known = values.filter_map(|(place, value)| Some((place, (*value)?)));
                known.filter(|(_, value)| axis.scale.has(*value))
            };
            let points: Vec<(f64, f64)> = values().map(|(at, value)| (x(at), y(value))).collect();
            let class = series(index, line.ours);
            polyline(svg, &class, &points);
            for (place, value) in values() {
                let (name, setting) = (&line.name, &settings[place]);
                let says = format!("{name}, {setting}: {} {}", (axis.label)(value), axis.title);
                dot(svg, &class, [x(place), y(value)], "3.5", Some(&says));
            }
        }
        for (index, label_y) in label_places(lines, y, base + 8.0) {
            let (name, class) = (&lines[index].name, series(index, lines[index].ours));
            let key = [(right + 2.0, label_y), (right + KEY - 2.0, label_y)];
            polyline(svg, &class, &key);
            let class = format!("{class} name");
            let name = shortened(name, NAME_LETTERS);
            svg.label(Some(&class), right + KEY + 2.0, figure(label_y + 4.0), None, name);
        }
    });
    part
}

/// Words at these places of a line, of which none runs into the one before it.
fn labels(svg: &mut Markup, line: f64, words: impl Iterator<Item = (f64, impl AsRef<str>)>) {
    let mut free_from = f64::NEG_INFINITY;
    for (x, words) in words {
        let half = LETTER * words.as_ref().chars().count() as f64 / 2.0;
        if x - half >= free_from {
            svg.label(Some("scale"), figure(x), line, Some("middle"), words.as_ref());
            free_from = x + half + LETTER / 2.0;
        }
    }
}

/// The room that names of so many letters take beside a plot.
fn room(letters: usize) -> f64 {
    LETTER * letters.min(NAME_LETTERS) as f64 + 12.0
}

/// A point, which may say its figures under the pointer.
fn dot(svg: &mut Markup, class: &str, [x, y]: [f64; 2], radius: &str, says: Option<&str>) {
    let (x, y) = (figure(x), figure(y));
    svg.element("circle", &[("class", &class), ("cx", &x), ("cy", &y), ("r", &radius)], |circle| {
        says.iter().for_each(|says| circle.leaf("title", &[], says));
    });
}

fn polyline(svg: &mut Markup, class: &str, points: &[(f64, f64)]) {
    let points: String = points.iter().map(|(x, y)| format!("{x:.1},{y:.1} ")).collect();
    svg.element("polyline", &[("class", &class), ("points", &points)], |_| {});
}

/// A picture of this width and height below its title, which is bold up to its first semicolon.
fn svg(part: &mut Markup, title: &str, size: [f64; 2], draw: impl FnOnce(&mut Markup)) {
    const LINE: f64 = 17.0;
    let (head, rest) = title.split_once("; ").unwrap_or((title, ""));
    let parts = [(head, "title", LETTERS - 10), (rest, "scale", LETTERS)];
    let [head, rest] = parts.map(|(text, class, letters)| {
        let lines = wrap("", text.trim_end_matches('.'), 0, letters);
        lines.lines().map(|line| (class, line.to_owned())).collect::<Vec<_>>()
    });
    let lines: Vec<_> = head.into_iter().chain(rest).filter(|line| !line.1.is_empty()).collect();
    let top = LINE * lines.len() as f64 + 8.0;
    let (width, height) = (size[0], size[1] + top);
    let view_box = format!("0 0 {width} {height}");
    let attributes: [Attribute<'_>; 3] =
        [("role", &"img"), ("aria-label", &title), ("viewBox", &view_box)];
    part.element("svg", &attributes, |svg| {
        svg.rect(&[("class", &"paper")], [&0, &0, &width, &height]);
        for (at, (class, line)) in (1..).zip(&lines) {
            let line = shortened(line, LETTERS);
            svg.label(Some(class), 4, LINE * f64::from(at), None, line);
        }
        let below: [Attribute<'_>; 1] = [("transform", &format_args!("translate(0 {top})"))];
        svg.element("g", &below, draw);
    });
}

/// The classes of a line: its colour and dashes.
fn series(index: usize, ours: bool) -> String {
    let ours = if ours { " ours" } else { "" };
    format!("series s{}{ours}", index % 6)
}

/// Where the name of each line stands: beside its last value, but at least a line of text below
/// the name above it, and never below `lowest`.
fn label_places(lines: &[Line], y: impl Fn(f64) -> f64, lowest: f64) -> Vec<(usize, f64)> {
    let last = |line: &Line| Some(y(line.values.iter().flatten().last()?.max(0.0)));
    let places = lines.iter().enumerate().filter_map(|(index, line)| Some((index, last(line)?)));
    let mut places: Vec<(usize, f64)> = places.collect();
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

/// A coordinate with a tenth of a unit, which is less than a pixel.
fn figure(value: f64) -> String {
    format!("{value:.1}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::tests::attribute;

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
    fn names_of_many_lines_were_above_the_picture() {
        let line =
            |name: usize| Line { name: name.to_string(), values: vec![Some(1.0); 2], ours: false };
        let all: Vec<Line> = (0..40).map(line).collect();
        let axis = Axis::new("t", Scale::Bars, bench::units::figures);
        let svg = lines("CPUs", &axis, &["1", "2"].map(str::to_owned), &all).into_string();
        let names = svg.split(" name\" x=\"").skip(1);
        let places: Vec<f64> = names.map(|rest| attribute(rest, "y")[0]).collect();
        assert!(places.len() == 40 && places.iter().all(|&y| y > 0.0), "{places:?}");
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
        assert!(room(200) < WIDTH / 2.0);
    }

    #[test]
    fn a_title_is_drawn_and_its_lines_have_room() {
        let mut part = Markup::default();
        let title = format!("Reads beside an updater; {}", "some words ".repeat(12));
        svg(&mut part, &title, [WIDTH, 10.0], |_| {});
        let text = part.into_string();
        assert!(text.contains(">Reads beside an updater</text>"), "{text}");
        assert_eq!(text.matches("class=\"scale\"").count(), 3, "{text}");
        assert!(text.contains("viewBox=\"0 0 480 86\""), "four lines, and the plot: {text}");
    }

    #[test]
    fn colours_differ_for_each_kind_of_eyes_and_stand_out_from_the_paper() {
        let style = include_str!("../plot.css");
        let (light, rest) = style.split_once("@media").expect("a light and a dark set");
        for set in [light, rest.split_once("svg {").expect("rules").0] {
            let colour = |name: &str| {
                let hex = set.split_once(&format!("--{name}: #")).expect(name).1;
                [0, 2, 4].map(|at| linear(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()))
            };
            let paper = colour("paper");
            let lines = ["s0", "s1", "s2", "s3", "s4", "s5"].map(colour);
            for (name, min) in [("ours", 3.0), ("other", 3.0), ("ink", 7.0), ("soft", 4.5)] {
                assert!(contrast(colour(name), paper) >= min, "{name} in {set}");
            }
            for (at, one) in lines.iter().enumerate() {
                assert!(contrast(*one, paper) >= 3.0, "s{at} in {set}");
                for other in &lines[..at] {
                    for eyes in EYES {
                        let apart = distance(seen(*one, eyes), seen(*other, eyes));
                        assert!(apart >= 15.0, "s{at} is {apart:.0} from another in {set}");
                    }
                }
            }
        }
    }

    type Colour = [f64; 3];

    /// How a colour looks to a person with all cones, without those for red, green or blue:
    /// Machado, Oliveira and Fernandes, 2009, for linear RGB.
    const EYES: [[Colour; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152_286, 1.052_583, -0.204_868],
            [0.114_503, 0.786_281, 0.099_216],
            [-0.003_882, -0.048_116, 1.051_998],
        ],
        [
            [0.367_322, 0.860_646, -0.227_968],
            [0.280_085, 0.672_501, 0.047_413],
            [-0.011_820, 0.042_940, 0.968_881],
        ],
        [
            [1.255_528, -0.076_749, -0.178_779],
            [-0.078_411, 0.930_809, 0.147_602],
            [0.004_733, 0.691_367, 0.303_900],
        ],
    ];

    fn linear(byte: u8) -> f64 {
        let share = f64::from(byte) / 255.0;
        if share <= 0.040_45 { share / 12.92 } else { ((share + 0.055) / 1.055).powf(2.4) }
    }

    fn dot_product(a: Colour, b: Colour) -> f64 {
        a.iter().zip(b).map(|(a, b)| a * b).sum()
    }

    fn seen(colour: Colour, eyes: [Colour; 3]) -> Colour {
        eyes.map(|row| dot_product(row, colour).clamp(0.0, 1.0))
    }

    const LUMINANCE: Colour = [0.2126, 0.7152, 0.0722];

    /// As WCAG 2 has it: 3 is asked for of what is drawn, 4.5 of text.
    fn contrast(a: Colour, b: Colour) -> f64 {
        let [a, b] = [a, b].map(|colour| dot_product(LUMINANCE, colour) + 0.05);
        a.max(b) / a.min(b)
    }

    /// In CIELAB.
    fn distance(a: Colour, b: Colour) -> f64 {
        let [a, b] = [a, b].map(|colour| {
            let x = dot_product([0.4124, 0.3576, 0.1805], colour) / 0.950_47;
            let z = dot_product([0.0193, 0.1192, 0.9505], colour) / 1.088_83;
            let [x, y, z] = [x, dot_product(LUMINANCE, colour), z].map(|part: f64| {
                if part > 0.008_856 { part.cbrt() } else { 7.787 * part + 16.0 / 116.0 }
            });
            [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
        });
        a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
    }
}
