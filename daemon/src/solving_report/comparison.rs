//! Report of a comparison of a robust model with its competitors: text and files.

use std::path::Path;

use mingle_lab::comparison::{Comparison, Noise, Scores};
use mingle_peer::error::Context;
use mingle_peer::{ErrorKind, Result, output_file};

use crate::out;

/// Prints scores by noise and model: over all samples, and of the worst site.
pub(crate) fn print(comparison: &Comparison) {
    let Comparison { measure, draws, noises, models } = comparison;
    out::line("");
    out::line(format!("{measure} on test data with noise, over {draws} draws: all samples / worst site"));
    let names: String = models.iter().map(|model| format!(" {:>13}", model.name)).collect();
    out::line(format!("{:>6} {:>9}{names}", "mean", "deviation"));
    for (at, Noise { mean, deviation }) in noises.iter().enumerate() {
        let scores = models.iter().map(|Scores { mean, worst_site, .. }| {
            format!(" {:>13}", format!("{:.3} / {:.3}", mean[at], worst_site[at]))
        });
        out::line(format!("{mean:>6} {deviation:>9}{}", scores.collect::<String>()));
    }
    let sizes: String = models.iter().map(|model| format!(" {:>13.3}", model.largest_coefficient)).collect();
    out::line(format!("{:>16}{sizes}", "largest coeff."));
}

/// Writes `comparison.json` and `comparison.svg` into a folder.
pub(crate) fn write(folder: &Path, title: &str, comparison: &Comparison) -> Result {
    let text =
        serde_json::to_string_pretty(comparison).context(ErrorKind::Unexpected, "cannot encode the comparison")?;
    output_file::write(&folder.join("comparison.json"), format!("{text}\n").as_bytes())?;
    output_file::write(&folder.join("comparison.svg"), comparison.picture(title).as_bytes())
}
