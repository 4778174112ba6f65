//! The result of one check.

use std::fmt;

/// A finding and, where something is wrong, the advice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The subject, in one word.
    pub subject: &'static str,
    /// The verdict.
    pub verdict: CheckVerdict,
    /// The finding; may have several lines.
    pub finding: String,
    /// The advice; none where nothing has to be done.
    pub advice: Option<String>,
}

/// The verdict of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckVerdict {
    /// All is well.
    Ok,
    /// A peer runs, though not as well as it could.
    Warn,
    /// No peer can run.
    Fail,
}

impl CheckVerdict {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

impl Check {
    /// A check without fault.
    pub fn ok(subject: &'static str, finding: impl Into<String>) -> Self {
        Self { subject, verdict: CheckVerdict::Ok, finding: finding.into(), advice: None }
    }

    /// A check that found room for improvement, with the advice.
    pub fn warn(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, verdict: CheckVerdict::Warn, finding: finding.into(), advice: Some(advice.into()) }
    }

    /// A check that found what keeps a peer from running, with the advice.
    pub fn fail(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, verdict: CheckVerdict::Fail, finding: finding.into(), advice: Some(advice.into()) }
    }

    /// The check as an object with `subject`, `verdict`, `finding` and `advice`.
    pub fn to_json(&self) -> serde_json::Value {
        serde_json::json!({
            "subject": self.subject,
            "verdict": self.verdict.name().to_lowercase(),
            "finding": self.finding,
            "advice": self.advice,
        })
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Further lines are indented below the first.
        let finding = self.finding.replace('\n', "\n                ");
        write!(f, "{:<4}  {:<9} {finding}", self.verdict.name(), self.subject)?;
        match &self.advice {
            Some(advice) => write!(f, "\n                -> {advice}"),
            None => Ok(()),
        }
    }
}
