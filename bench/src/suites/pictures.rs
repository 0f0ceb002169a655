//! `rcu bench pictures`: figures of other suites that README and docs/MEASURED.md show. What is
//! drawn stands in `suites.toml`; the command draws it.

use serde::Deserialize;

use super::{Options, SUITES, Suite, readme};
use crate::Error;

/// One picture.
#[derive(Debug, Deserialize)]
pub struct Picture {
    /// The name of its file, without an extension.
    pub file: &'static str,
    /// What it shows.
    pub title: &'static str,
    /// What is measured.
    pub axis: &'static str,
    /// The title of the settings, over which each rival has a curve; without, a row for each.
    pub over: Option<&'static str>,
    /// Nothing is measured without.
    #[serde(default)]
    suite: &'static str,
    /// A label, the case and the metric of each setting.
    #[serde(default)]
    pub settings: Vec<[&'static str; 3]>,
    /// The label and the name of each rival.
    #[serde(default)]
    pub rivals: Vec<[&'static str; 2]>,
}

/// The pictures of these files, or all if none is named.
pub fn chosen(files: &[String]) -> Vec<&'static Picture> {
    let is_wanted =
        |picture: &&Picture| files.is_empty() || files.iter().any(|file| file == picture.file);
    SUITES.pictures.iter().filter(is_wanted).collect()
}

/// The suite, ready to run: all that is in these pictures and compiled in.
///
/// # Errors
/// If a rival is named that is in none of them, or a base: there are no ratios.
pub fn prepare(files: &[String], options: &Options) -> Result<Suite, Error> {
    let shown = |picture: &'static Picture| {
        let of_setting = |[_, case, _]: &'static [&'static str; 3]| {
            let rivals = picture.rivals.iter();
            rivals.map(move |[_, name]| (picture.suite, *case, *name))
        };
        picture.settings.iter().flat_map(of_setting).collect()
    };
    let shown: Vec<_> = chosen(files).into_iter().map(shown).collect();
    readme::suite("pictures", "pictures", &shown, options)
}

#[cfg(test)]
mod tests {
    use super::super::tests::has;
    use super::*;

    #[test]
    fn every_setting_of_a_picture_is_a_metric_of_a_case_and_every_rival_is_measured() {
        let suite = prepare(&[], &Options::default()).unwrap();
        for picture in &SUITES.pictures {
            for [_, id, metric] in &picture.settings {
                let of_case = |planned: &&super::super::Planned| planned.case.id == *id;
                let case = &suite.planned.iter().find(of_case).expect(id).case;
                has(case, metric, picture.rivals.iter().map(|[_, name]| *name));
            }
        }
        let build = prepare(&["build".to_owned()], &Options::default()).unwrap();
        assert!(build.planned.is_empty(), "nothing is measured for what a user compiles");
    }
}
