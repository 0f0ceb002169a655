//! The timeline as a picture: who held each grace period up, when, as one SVG that needs nothing
//! else.
//!
//! A callback queue for each grace period, one below the other in the order they began. The
//! coloured part is the time until the last holdout was found to be quiescent, with a thin line
//! from where that one had been quiescent before; the grey part is what the engine took from there
//! to the end. The colour says what the holdout was doing when the grace period began, which is
//! what a grace period has to wait for; the text to the right says so too, and what it was doing
//! when it was found, if that is something else.

use bench::units;
use simulate::timeline::{Doing, GracePeriod};

use crate::html::{Attribute, Markup};
use crate::output::shortened;
use crate::plot::figure;

const WIDTH: f64 = 1210.0;
/// Room for names on the left and for the holdouts in words on the right.
const NAMES: f64 = 96.0;
const WORDS: f64 = 530.0;
const CALLBACK_QUEUE: f64 = 18.0;
const HEAD: f64 = 62.0;
const FOOT: f64 = 34.0;
/// Characters of this size that fit into the whole width.
const TITLE_CHARACTERS: usize = 140;

/// Every rule names the picture, so that it can stand in a page with rules of its own.
const STYLE: &str = include_str!("../timeline.css");

/// The timeline of one run.
#[derive(Clone, Debug)]
pub(super) struct Panel {
    /// What was run.
    pub(super) title: String,
    /// In the order they began.
    pub(super) grace_periods: Vec<GracePeriod>,
}

/// The picture of some runs, one panel below the other, as a file of its own.
pub(super) fn draw(panels: &[Panel]) -> String {
    let mut picture = Markup::default();
    add(&mut picture, panels, &[("xmlns", &"http://www.w3.org/2000/svg")]);
    picture.into_string()
}

/// The same as a part of a page, without an attribute that only a file needs.
pub(super) fn add(part: &mut Markup, panels: &[Panel], of_root: &[Attribute<'_>]) {
    // Engines are compared by length, so a millisecond is as long in every panel.
    let span = panels.iter().map(|each| Scale::of(&each.grace_periods).span()).max().unwrap_or(1);
    let heights: Vec<f64> = panels.iter().map(Panel::height).collect();
    let height: f64 = heights.iter().sum::<f64>() + 8.0;
    let tops = heights.iter().scan(0.0, |next, height| {
        let top = *next;
        *next += height;
        Some(top)
    });
    let view_box = format!("0 0 {WIDTH} {height}");
    let attributes: [Attribute<'_>; 6] = [
        ("class", &"timeline"),
        ("role", &"img"),
        ("aria-label", &"Grace periods and who held them up"),
        ("viewBox", &view_box),
        ("width", &WIDTH),
        ("height", &height),
    ];
    part.element("svg", &[of_root, &attributes].concat(), |svg| {
        svg.element("style", &[], |style| style.literal(STYLE.trim_end()));
        for (panel, top) in panels.iter().zip(tops) {
            let transform = format!("translate(0 {top})");
            svg.element("g", &[("transform", &transform)], |group| panel.draw(group, span));
        }
    });
}

/// From where to where time is shown, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Scale {
    from: u64,
    to: u64,
}

impl Scale {
    /// All of these grace periods; those that did not end reach beyond what is known of the others.
    fn of(grace_periods: &[GracePeriod]) -> Self {
        let from = grace_periods.iter().map(|each| each.began).min().unwrap_or(0);
        let known = |each: &GracePeriod| {
            let held = each.last_holdout.map_or(each.began, |held| held.until);
            each.ended.unwrap_or(each.began).max(held)
        };
        let last = grace_periods.iter().map(known).max().unwrap_or(from).max(from + 1);
        let is_open = grace_periods.iter().any(|each| each.ended.is_none());
        Self { from, to: if is_open { last + (last - from) / 20 + 1 } else { last } }
    }

    fn span(self) -> u64 {
        self.to - self.from
    }

    /// Where a moment stands, in the picture's units.
    fn x(self, at: u64) -> f64 {
        let share = at.saturating_sub(self.from) as f64 / (self.to - self.from) as f64;
        NAMES + (WIDTH - NAMES - WORDS) * share.clamp(0.0, 1.0)
    }

    /// From mark to mark: 1, 2 or 5 times a power of ten, so that there are 4 to 10.
    fn step(self) -> u64 {
        let span = self.to - self.from;
        let steps = |step: u64| [1, 2, 5].map(|times| step.saturating_mul(times));
        let powers = (0..19).map(|power| 10_u64.pow(power));
        powers.flat_map(steps).find(|&step| span / step <= 9).unwrap_or(span)
    }
}

impl Panel {
    fn height(&self) -> f64 {
        HEAD + CALLBACK_QUEUE * self.grace_periods.len().max(1) as f64 + FOOT
    }

    fn draw(&self, svg: &mut Markup, span: u64) {
        let from = Scale::of(&self.grace_periods).from;
        let scale = Scale { from, to: from + span };
        let bottom = HEAD + CALLBACK_QUEUE * self.grace_periods.len().max(1) as f64;
        let step = scale.step();
        svg.label(Some("title"), 8, 22, None, shortened(&self.title, TITLE_CHARACTERS));
        legend(svg, &self.grace_periods);
        if self.grace_periods.is_empty() {
            let words = "no grace period began in this time";
            svg.label(Some("soft"), NAMES, HEAD + 13.0, None, words);
            return;
        }
        for mark in (0..=(scale.to - scale.from) / step).map(|mark| mark * step) {
            let x = figure(scale.x(scale.from + mark));
            svg.line("grid", [&x, &x, &(HEAD - 4.0), &bottom]);
            let at = if mark == 0 { "0".to_owned() } else { units::nanoseconds(mark as f64) };
            svg.label(Some("soft"), &x, bottom + 15.0, Some("middle"), at);
        }
        for (place, grace_period) in self.grace_periods.iter().enumerate() {
            self.callback_queue(svg, place, grace_period, scale);
        }
    }

    fn callback_queue(
        &self,
        svg: &mut Markup,
        place: usize,
        grace_period: &GracePeriod,
        scale: Scale,
    ) {
        let top = HEAD + CALLBACK_QUEUE * place as f64;
        let middle = figure(top + CALLBACK_QUEUE / 2.0);
        // Where each CPU has grace periods of its own.
        let name = match self.grace_periods.iter().any(|each| each.of != 0) {
            true => format!("{}: CPU {}", place + 1, grace_period.of),
            false => (place + 1).to_string(),
        };
        let began = scale.x(grace_period.began);
        let end = grace_period.ended.unwrap_or(Scale::of(&self.grace_periods).to);
        let ended = scale.x(end);
        // The holdout was there from the beginning, and until it was found not to be.
        let held = grace_period.last_holdout.map(|held| {
            let until = held.until.clamp(grace_period.began, end);
            (held, scale.x(held.since.min(grace_period.began)), scale.x(until))
        });
        let rest = held.map_or(began, |(_, _, until)| until);
        let text_y = figure(top + 13.0);
        svg.label(None, NAMES - 8.0, &text_y, Some("end"), name);
        if grace_period.ended.is_some() {
            bar(svg, "rest", rest, top, ended - rest);
        } else {
            svg.line("open", [&figure(rest), &figure(ended), &middle, &middle]);
        }
        if let Some((held, since, until)) = held {
            let (class, _) = shown(held.doing_at_first);
            let ends = [figure(since), figure(began)];
            svg.line(&format!("before {class}"), [&ends[0], &ends[1], &middle, &middle]);
            bar(svg, class, began, top, until - began);
        }
        svg.label(None, figure(WIDTH - WORDS + 10.0), &text_y, None, words(grace_period));
    }
}

/// A part of a callback queue.
fn bar(svg: &mut Markup, class: &str, x: f64, top: f64, width: f64) {
    let (x, y, width) = (figure(x), figure(top + 4.0), figure(width.max(0.6)));
    svg.rect(&[("class", &class)], [&x, &y, &width, &10]);
}

/// The callback queue in words: how long, and who was waited for last.
fn words(grace_period: &GracePeriod) -> String {
    let after = |at: u64| units::nanoseconds(at.saturating_sub(grace_period.began) as f64);
    let length = grace_period.ended.map_or("not over yet".to_owned(), after);
    match grace_period.last_holdout {
        None if grace_period.ended.is_some() => format!("{length}: nobody was waited for"),
        None => length,
        Some(held) => {
            let mut words = format!("{length}: CPU {}, {}", held.cpu, shown(held.doing_at_first).1);
            if held.doing != held.doing_at_first {
                words = format!("{words}, then {}", shown(held.doing).1);
            }
            // Otherwise it went on to the end, as far as can be seen.
            if after(held.until) != length {
                words = format!("{words}, until {}", after(held.until));
            }
            words
        }
    }
}

/// What the colours mean that are in the panel, one entry beside the other.
fn legend(svg: &mut Markup, grace_periods: &[GracePeriod]) {
    const ALL: [Doing; 6] =
        [Doing::User, Doing::Calls, Doing::Kernel, Doing::Reading, Doing::Softirq, Doing::Idle];
    /// The width of a letter, at most, and of what stands beside the words.
    const LETTER: f64 = 6.5;
    const BESIDE: f64 = 33.0;
    let is_used = |doing: &Doing| {
        let held = grace_periods.iter().filter_map(|each| each.last_holdout);
        held.into_iter().any(|held| held.doing_at_first == *doing)
    };
    let used: Vec<Doing> = ALL.into_iter().filter(is_used).collect();
    if !used.is_empty() {
        svg.label(Some("soft"), 8, 42, None, "last holdout:");
    }
    let ends = grace_periods.iter().any(|each| each.ended.is_some());
    let rest = ends.then_some(("rest", "the engine ends it"));
    let mut x = NAMES;
    for (class, name) in used.into_iter().map(shown).chain(rest) {
        svg.rect(&[("class", &class)], [&x, &33, &10, &10]);
        svg.label(Some("soft"), x + 15.0, 42, None, name);
        x += BESIDE + LETTER * name.chars().count() as f64;
    }
}

/// What the holdout did: the class of its colour, and in words.
const fn shown(doing: Doing) -> (&'static str, &'static str) {
    match doing {
        Doing::Idle => ("idle", "idle"),
        Doing::User => ("user", "in user mode"),
        Doing::Calls => ("calls", "in system calls"),
        Doing::Kernel => ("kernel", "in the kernel"),
        Doing::Reading => ("reading", "reading"),
        Doing::Softirq => ("softirq", "in softirqs"),
    }
}

#[cfg(test)]
mod tests {
    use simulate::timeline::Holdout;

    use super::*;

    fn panel(title: &str) -> Panel {
        let held = Holdout {
            cpu: 3,
            since: 900,
            until: 1_600,
            doing_at_first: Doing::Reading,
            doing: Doing::User,
        };
        let grace_period =
            |began, ended, last_holdout| GracePeriod { of: 0, began, ended, last_holdout };
        let grace_periods = vec![
            grace_period(1_000, Some(2_000), Some(held)),
            grace_period(2_000, Some(2_500), None),
            grace_period(2_500, None, None),
        ];
        Panel { title: title.to_owned(), grace_periods }
    }

    /// Fails unless every element that is opened is closed in its turn, and text is escaped.
    fn check_well_formed(svg: &str) {
        let mut open: Vec<&str> = Vec::new();
        for piece in svg.split('<').skip(1) {
            let (tag, text) = piece.split_once('>').expect("a tag ends");
            assert!(!tag.contains('<'), "{tag}");
            let name = tag.split_whitespace().next().unwrap_or("");
            match name.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name), "in {svg}"),
                None => {
                    assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
                    open.push(name);
                }
            }
            let is_style = open.last() == Some(&"style");
            assert!(is_style || !text.contains('>'), "{text}");
            for entity in text.split('&').skip(1) {
                assert!(entity.contains(';'), "{text}");
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn a_picture_is_well_formed_and_escaped() {
        let svg = draw(&[panel("a <b> & \"c\""), panel("d")]);
        assert!(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{svg}");
        assert!(svg.contains("a &lt;b&gt; &amp; "), "{svg}");
        check_well_formed(&svg);
    }

    #[test]
    fn every_mark_is_inside_and_callback_queues_do_not_overlap() {
        let svg = draw(&[panel("a")]);
        let attribute = |name: &str| -> Vec<f64> {
            let start = format!(" {name}=\"");
            let values = svg.split(&start).skip(1);
            values.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
        };
        for name in ["x", "x1", "x2"] {
            let values = attribute(name);
            assert!(values.iter().all(|x| (0.0..=WIDTH).contains(x)), "{name}: {values:?}");
        }
        let height = panel("a").height();
        for name in ["y", "y1", "y2"] {
            let values = attribute(name);
            assert!(values.iter().all(|y| (0.0..=height).contains(y)), "{name}: {values:?}");
        }
    }

    #[test]
    fn callback_queues_are_told_in_words() {
        let panel = panel("a");
        let words: Vec<String> = panel.grace_periods.iter().map(words).collect();
        assert_eq!(
            words,
            [
                "1.00 µs: CPU 3, reading, then in user mode, until 600 ns",
                "500 ns: nobody was waited for",
                "not over yet",
            ]
        );
        assert!(draw(&[panel]).contains("CPU 3, reading, then in user mode, until 600 ns"));
    }

    #[test]
    fn the_longest_words_fit_beside_the_callback_queues() {
        /// The widest of the fonts that are asked for has letters of about this width.
        const LETTER: f64 = 7.0;
        let held = Holdout {
            cpu: 4_095,
            since: 0,
            until: 123_400_000,
            doing_at_first: Doing::Calls,
            doing: Doing::User,
        };
        let longest = GracePeriod { of: 0, began: 0, ended: None, last_holdout: Some(held) };
        let words = words(&longest);
        let expected = "not over yet: CPU 4095, in system calls, then in user mode, until 123 ms";
        assert_eq!(words, expected);
        assert!(words.chars().count() as f64 * LETTER <= WORDS - 10.0);
    }

    #[test]
    fn the_hold_out_is_drawn_from_the_beginning_of_the_grace_period_to_its_report() {
        let grace_periods = panel("a").grace_periods;
        let scale = Scale::of(&grace_periods);
        assert_eq!(scale.from, 1_000);
        let svg = draw(&[panel("a")]);
        let (x, width) = (scale.x(1_000), scale.x(1_600) - scale.x(1_000));
        let expected =
            format!("class=\"reading\" x=\"{x:.1}\" y=\"66.0\" height=\"10\" width=\"{width:.1}\"");
        assert!(svg.contains(&expected), "{expected} in {svg}");
    }

    #[test]
    fn a_time_is_as_long_in_every_panel() {
        let short = panel("a");
        let mut long = panel("b");
        long.grace_periods[1].ended = Some(9_000);
        let widths = |panels: &[Panel]| -> Vec<String> {
            let svg = draw(panels);
            let bars = svg.split("class=\"reading\" x=\"").skip(1);
            let width =
                |bar: &str| bar.split("width=\"").nth(1)?.split('"').next().map(str::to_owned);
            bars.filter_map(width).filter(|width| width != "10").collect()
        };
        let together = widths(&[short.clone(), long]);
        assert_eq!(together.len(), 2, "{together:?}");
        assert_eq!(together[0], together[1]);
        assert_ne!(widths(&[short])[0], together[0]);
    }

    #[test]
    fn the_legend_has_what_is_in_the_panel_only() {
        let svg = draw(&[panel("a")]);
        assert!(svg.contains(">reading<") && svg.contains(">the engine ends it<"), "{svg}");
        assert!(!svg.contains(">idle<") && !svg.contains(">in softirqs<"), "{svg}");
    }

    #[test]
    fn marks_are_round_and_few() {
        for to in [1, 9, 10, 999, 12_345, 7_000_000_000] {
            let scale = Scale { from: 0, to };
            assert!((1..=10).contains(&(to / scale.step() + 1)), "{to}: {}", scale.step());
        }
        assert_eq!(Scale { from: 0, to: 45_000_000 }.step(), 5_000_000);
    }

    #[test]
    fn nothing_to_show_is_said() {
        let empty = Panel { title: "a".to_owned(), grace_periods: Vec::new() };
        let svg = draw(&[empty]);
        assert!(svg.contains("no grace period began"), "{svg}");
        check_well_formed(&svg);
    }
}
