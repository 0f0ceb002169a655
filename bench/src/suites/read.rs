//! `rcu bench read`: enter a section, load the pointer, read its word, leave; also inside another
//! section.

use super::rounds::{Metric, Unit};
use super::scenes::{Scenes, Threads, What, scene};

const READ: &[Metric] = &[Metric::new("read", Unit::Nanoseconds)];

/// The suite.
pub static SCENES: Scenes = Scenes {
    bench: "read",
    bases: &["liburcu-memb", "quiescence"],
    groups: &[
        ("read", "A section, in one thread and in two"),
        ("nested", "A section inside another one of the thread"),
    ],
    all: &[
        scene("read/1-thread", "one thread", READ, read(1)),
        scene("read/2-threads", "two threads", READ, read(2)),
        scene(
            "nested/1-thread",
            "one thread, inside another section",
            READ,
            What::Loop(|rival| rival.nested, Threads::Same(1)),
        ),
    ],
};

const fn read(threads: usize) -> What {
    What::Loop(|rival| rival.read, Threads::Same(threads))
}
