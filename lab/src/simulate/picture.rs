//! The timeline as a picture: who held each grace period up, when.
//!
//! A row for each grace period, in the order they began. The coloured part is the time until the
//! last holdout was found to be quiescent; the grey part is what the engine took from there to the
//! end. The colour says what the holdout was doing when the grace period began, which is what a
//! grace period has to wait for; the text to the right says so too, and what it was doing when it
//! was found, if that is something else.

use bench::units;
use simulate::timeline::{Doing, GracePeriod};

use crate::html::Markup;
use crate::plot::{self, Axis, Interval, Scale};

/// What tells a run apart from the others, and its grace periods in the order they began.
pub(super) type Panel = (String, Vec<GracePeriod>);

/// The picture of some runs, the rows of one below those of the other, on one scale: engines are
/// compared by length. What all of them share is in its title.
pub(super) fn draw(panels: &[Panel], shared: &[String]) -> Markup {
    let what = format!("Grace periods and who held them up: {}", shared.join(", "));
    let label = |ns| if ns == 0.0 { "0".to_owned() } else { units::nanoseconds(ns) };
    let axis = Axis::new("time since the first of them began", Scale::Spans, label);
    plot::intervals(&what, axis, panels.iter().flat_map(rows).collect())
}

fn rows((title, grace_periods): &Panel) -> Vec<Interval> {
    let Some(first) = grace_periods.iter().map(|each| each.began).min() else {
        let words = "no grace period began that is to be shown".to_owned();
        return vec![Interval::of(title, false, [0.0; 3], words)];
    };
    // What did not end reaches to the last moment that is known of the others.
    let known = grace_periods.iter().flat_map(|each| {
        let held = each.last_holdout.map(|held| held.until);
        [Some(each.began), each.ended, held].into_iter().flatten()
    });
    let last = known.max().unwrap_or(first);
    let have_cpus = grace_periods.iter().any(|each| each.of != 0);
    let row = |(number, each): (usize, &GracePeriod)| {
        let (held, end) = (each.last_holdout, each.ended.unwrap_or(last));
        let until = held.map_or(each.began, |held| held.until.clamp(each.began, end));
        let places = [until, each.began, end].map(|at| (at - first) as f64);
        let cpu = if have_cpus { format!(": CPU {}", each.of) } else { String::new() };
        Interval {
            class: held.map_or("other", |held| shown(held.doing_at_first).0),
            ..Interval::of(format!("{title}: {number}{cpu}"), false, places, words(each))
        }
    };
    (1..).zip(grace_periods).map(row).collect()
}

/// A grace period in words: how long, and who was waited for last.
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
    use crate::html::{self, tests::attribute};

    fn file(panels: &[Panel]) -> String {
        html::picture(&draw(panels, &[])).expect("it has rows").1
    }

    /// A CPU that was reading, or in system calls, and then in user mode.
    fn held(cpu: usize, doing_at_first: Doing, until: u64) -> Option<Holdout> {
        Some(Holdout { cpu, since: 0, until, doing_at_first, doing: Doing::User })
    }

    fn grace_period(began: u64, ended: Option<u64>, last_holdout: Option<Holdout>) -> GracePeriod {
        GracePeriod { of: 0, began, ended, last_holdout }
    }

    fn panel(title: &str) -> Panel {
        let grace_periods = vec![
            grace_period(1_000, Some(2_000), held(3, Doing::Reading, 1_600)),
            grace_period(2_000, Some(2_500), None),
            grace_period(2_500, None, None),
        ];
        (title.to_owned(), grace_periods)
    }

    /// Where the bars of this class begin, and how wide they are.
    fn bars(panels: &[Panel], class: &str) -> Vec<(f64, f64)> {
        let svg = file(panels);
        let class = format!("class=\"{class}\"");
        let bars = svg.split(&class).skip(1);
        let of = |bar: &str, name: &str| attribute(bar.split('>').next().unwrap(), name)[0];
        bars.map(|bar| (of(bar, "x"), of(bar, "width"))).collect()
    }

    #[test]
    fn every_mark_is_inside_and_rows_do_not_overlap() {
        let svg = file(&[panel("a")]);
        let view_box = svg.split("viewBox=\"0 0 ").nth(1).unwrap().split('"').next().unwrap();
        let (width, height) = view_box.split_once(' ').unwrap();
        for (names, most) in [(["x", "x1", "x2"], width), (["y", "y1", "y2"], height)] {
            for name in names {
                let values = attribute(&svg, name);
                let most = most.parse().unwrap();
                assert!(values.iter().all(|at| (0.0..=most).contains(at)), "{name}: {values:?}");
            }
        }
        let rects = svg.split("<rect class").skip(1).filter(|rect| !rect.starts_with("=\"paper"));
        let rects = rects.map(|rect| rect.split('>').next().unwrap());
        let mut ends = attribute(&rects.collect::<String>(), "y");
        ends.dedup();
        assert_eq!(ends.len(), 3, "{ends:?}");
        assert!(ends.windows(2).all(|pair| pair[0] + 16.0 <= pair[1]), "{ends:?}");
    }

    #[test]
    fn grace_periods_are_told_in_words() {
        let panel = panel("a");
        let words: Vec<String> = panel.1.iter().map(words).collect();
        assert_eq!(
            words,
            [
                "1.00 µs: CPU 3, reading, then in user mode, until 600 ns",
                "500 ns: nobody was waited for",
                "not over yet",
            ]
        );
        assert!(file(&[panel]).contains("CPU 3, reading, then in user mode, until 600 ns"));
    }

    #[test]
    fn the_longest_words_leave_room_for_the_rows() {
        let longest = grace_period(0, None, held(4_095, Doing::Calls, 123_400_000));
        let expected = "not over yet: CPU 4095, in system calls, then in user mode, until 123 ms";
        assert_eq!(words(&longest), expected);
        let ended = GracePeriod { ended: Some(200_000_000), ..longest };
        let panel = (String::new(), vec![ended]);
        assert!(bars(&[panel], "calls")[0].1 > 100.0);
    }

    #[test]
    fn the_hold_out_is_drawn_from_the_beginning_of_the_grace_period_to_its_report() {
        let [held, ended] = ["reading", "rest"].map(|class| bars(&[panel("a")], class)[0]);
        assert!((held.0 + held.1 - ended.0).abs() < 0.2, "{held:?} {ended:?}");
        // 600 ns of 1,000.
        assert!((held.1 / (held.1 + ended.1) - 0.6).abs() < 0.01, "{held:?} {ended:?}");
    }

    #[test]
    fn a_time_is_as_long_in_every_panel() {
        let short = panel("a");
        let mut long = panel("b");
        long.1[1].ended = Some(9_000);
        let widths = |panels: &[Panel]| -> Vec<f64> {
            bars(panels, "reading").into_iter().map(|(_, width)| width).collect()
        };
        let together = widths(&[short.clone(), long]);
        assert_eq!(together.len(), 2, "{together:?}");
        assert!((together[0] - together[1]).abs() < 0.2, "{together:?}");
        assert!(widths(&[short])[0] > 1.5 * together[0]);
    }

    #[test]
    fn nothing_to_show_is_said() {
        let empty = ("a".to_owned(), Vec::new());
        let svg = file(&[empty]);
        assert!(svg.contains("no grace period began"), "{svg}");
    }
}
