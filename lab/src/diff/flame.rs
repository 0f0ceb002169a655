//! A differential flame graph (Gregg, 2014): a box for each function in its stack, as wide as what
//! it costs on one side, red where it grew and blue where it shrank.
//!
//! It is drawn here, on [`crate::html`]: the crate inferno draws such pictures too, but is under
//! the CDDL, which `deny.toml` does not allow.

use std::collections::BTreeMap;

use super::rank::Side;
use super::report::Report;
use crate::html::{Attribute, Markup};

const WIDTH: f64 = 1_200.0;
const ROW: f64 = 18.0;
/// Boxes narrower than this are left out, and those above so many.
const WIDTH_MIN: f64 = 1.0;
const DEPTH_MAX: usize = 1_000;
/// A letter is about so wide.
const LETTER: f64 = 7.0;

/// A function below its callers, with what it and its callees cost before and after.
#[derive(Debug, Default)]
struct Node {
    cost: [f64; 2],
    children: BTreeMap<String, Node>,
}

impl Node {
    fn of(sides: &[Side; 2]) -> Node {
        let mut root = Node::default();
        for (side, number) in sides.iter().zip(0..) {
            let each = side.cost_of_sample();
            for (stack, count) in &side.profile.stacks {
                let cost = *count as f64 * each;
                let mut node = &mut root;
                node.cost[number] += cost;
                for function in stack.iter().take(DEPTH_MAX) {
                    node = node.children.entry(function.clone()).or_default();
                    node.cost[number] += cost;
                }
            }
        }
        root
    }

    /// The boxes of this function and of its callees, those that are wide enough.
    fn boxes<'n>(
        &'n self,
        name: &'n str,
        (side, scale): (usize, f64),
        [mut x, row]: [f64; 2],
        all: &mut Vec<Drawn<'n>>,
    ) {
        all.push((name, self.cost, [x, row]));
        for (name, child) in &self.children {
            let width = child.cost[side] * scale;
            if width >= WIDTH_MIN {
                child.boxes(name, (side, scale), [x, row + 1.0], all);
            }
            x += width;
        }
    }
}

/// A box: its function, what that costs, and how far it is from the left and in which row.
type Drawn<'n> = (&'n str, [f64; 2], [f64; 2]);

/// Draws the graph of this label, as wide as the side of this number, before or after, says.
pub(super) fn draw(body: &mut Markup, label: &str, report: &Report, side: usize) {
    let root = Node::of(&report.sides);
    let scale = WIDTH / root.cost[side];
    let mut boxes = Vec::new();
    root.boxes("all", (side, scale), [0.0; 2], &mut boxes);
    let height = boxes.iter().map(|(.., [_, row])| (row + 1.0) * ROW).fold(0.0, f64::max);
    let view = format!("0 0 {WIDTH} {height}");
    let head: [Attribute<'_>; 4] =
        [("viewBox", &view), ("role", &"img"), ("class", &"flame"), ("aria-label", &label)];
    let draw = |group: &mut Markup, (name, cost, [x, row]): Drawn<'_>| {
        let (width, y) = (cost[side] * scale, height - (row + 1.0) * ROW);
        let [before, after] = cost.map(|cost| report.written(cost));
        group.leaf("title", &[], format_args!("{name}: {before} before, {after} after"));
        let place = [x, width].map(|number| format!("{number:.1}"));
        group.rect(&[("fill", &colour(cost))], [&place[0], &y, &place[1], &(ROW - 1.0)]);
        let letters = (width / LETTER) as usize;
        if letters > 3 {
            let text = shortened(name, letters);
            group.label(None, format_args!("{:.1}", x + 2.0), y + 13.0, None, text);
        }
    };
    body.element("svg", &head, |svg| {
        boxes.into_iter().for_each(|each| svg.element("g", &[], |group| draw(group, each)));
    });
}

/// White where nothing changed, to red or blue where all of it is new or gone.
fn colour([before, after]: [f64; 2]) -> String {
    let most = before.max(after).max(f64::MIN_POSITIVE);
    let change = (after - before) / most;
    let rest = (255.0 * (1.0 - change.abs()).max(0.25)) as u8;
    let (red, blue) = if change >= 0.0 { (255, rest) } else { (rest, 255) };
    format!("rgb({red},{rest},{blue})")
}

/// The end of a name says more than its beginning.
pub(super) fn shortened(name: &str, letters: usize) -> String {
    let length = name.chars().count();
    if length <= letters {
        return name.to_owned();
    }
    let end: String = name.chars().skip(length - (letters - 1)).collect();
    format!("…{end}")
}

#[cfg(test)]
mod tests {
    use super::super::Scale;
    use super::super::rank::tests::side;
    use super::*;
    use crate::html;

    #[test]
    fn boxes_are_as_wide_as_their_cost_and_coloured_by_their_growth() {
        let sides =
            [side("main;read 1\nmain;gone 1\n", 10.0), side("main;read 1\nmain;<new> 3\n", 20.0)];
        let report = Report { sides, scale: Scale::SamplesPerUnit };
        let drawn = |side| {
            let mut markup = Markup::default();
            draw(&mut markup, "flames", &report, side);
            // `--pictures` wrote nothing.
            let label = html::picture(&markup).map(|(label, _)| label.to_owned());
            assert_eq!(label.as_deref(), Some("flames"));
            markup.into_string()
        };
        let svg = drawn(1);
        assert!(svg.contains("main: 10.0 before, 20.0 after"), "{svg}");
        assert!(svg.contains("&lt;new&gt;: 0.00 before, 15.0 after"), "{svg}");
        assert!(svg.contains("width=\"900.0\""), "three quarters are new: {svg}");
        assert!(svg.contains("rgb(255,63,63)") && !svg.contains("gone"), "{svg}");
        let svg = drawn(0);
        assert!(svg.contains("gone: 5.00 before, 0.00 after"), "{svg}");
        assert!(svg.contains("rgb(63,63,255)"), "{svg}");
    }

    #[test]
    fn a_name_that_does_not_fit_keeps_its_end() {
        assert_eq!(shortened("quiescence::read", 5), "…read");
        assert_eq!(shortened("read", 5), "read");
    }
}
