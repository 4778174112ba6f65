//! One thing that was looked at.

use std::fmt;

/// What was found, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at, in one word.
    pub subject: &'static str,
    /// How it is.
    pub verdict: Verdict,
    /// What was found; may have several lines.
    pub finding: String,
    /// None where nothing has to be done.
    pub advice: Option<String>,
}

/// How it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// A peer runs, though not as well as it could.
    Warn,
    /// No peer can run.
    Fail,
}

impl Verdict {
    fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "FAIL",
        }
    }
}

impl Check {
    /// A thing that is as it should be.
    pub fn ok(subject: &'static str, finding: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Ok, finding: finding.into(), advice: None }
    }

    /// A thing that could be better, and how.
    pub fn warn(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Warn, finding: finding.into(), advice: Some(advice.into()) }
    }

    /// A thing that keeps a peer from running, and what to do.
    pub fn fail(subject: &'static str, finding: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { subject, verdict: Verdict::Fail, finding: finding.into(), advice: Some(advice.into()) }
    }

    /// As an object with `subject`, `verdict`, `finding` and `advice`.
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
        // What has several lines goes on below itself.
        let finding = self.finding.replace('\n', "\n                ");
        write!(f, "{:<4}  {:<9} {finding}", self.verdict.name(), self.subject)?;
        match &self.advice {
            Some(advice) => write!(f, "\n                -> {advice}"),
            None => Ok(()),
        }
    }
}
