//! npm's audits of every lock file. The package itself depends on nothing: these are what it is tested with.

use crate::root;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::process::{Command, Stdio};

/// Where lock files are.
const FOLDERS: &[&str] = &[
    "js/test/baseline",
    "js/test/bundlers",
    "js/test/next",
    "js/test/openai",
    "js/test/peers",
    "js/test/runtimes",
    "js/test/sdk",
    "js/test/site",
    "js/test/types",
    "js/test/vite",
];

/// Asks the registry about all of them. False if it knows of a vulnerability.
///
/// *Errors*: npm is missing, or the registry answers no audits.
pub fn audit() -> Result<bool> {
    let mut is_good = true;
    for folder in FOLDERS {
        let output = Command::new("npm")
            .args(["audit", "--package-lock-only", "--json"])
            .current_dir(root().join(folder))
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .context("cannot start npm, which audits JavaScript; install Node.js with npm (https://nodejs.org)")?;
        let found = vulnerable(&output.stdout).with_context(|| {
            format!(
                "npm's registry answers no audit, so that nothing is known of {folder} and others; set one that does"
            )
        })?;
        match found.is_empty() {
            true => println!("{folder}: nothing is known"),
            false => println!("{folder}: VULNERABLE: {}", found.join(", ")),
        }
        is_good &= found.is_empty();
    }
    Ok(is_good)
}

/// The packages that an audit names, with how bad it is.
fn vulnerable(report: &[u8]) -> Result<Vec<String>> {
    let report: Value = serde_json::from_slice(report).context("npm says nothing")?;
    if let Some(error) = report.get("error") {
        let mut reasons = [error.get("summary"), report.get("message")].into_iter().flatten().filter_map(Value::as_str);
        bail!("{}", reasons.find(|reason| !reason.is_empty()).unwrap_or("npm gives no reason"));
    }
    let found = report.get("vulnerabilities").and_then(Value::as_object).context("npm's report has no findings")?;
    let severity = |finding: &Value| finding.get("severity").and_then(Value::as_str).unwrap_or("unknown").to_owned();
    Ok(found.iter().map(|(name, finding)| format!("{name} ({})", severity(finding))).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lock_file_is_audited() {
        let folders = std::fs::read_dir(root().join("js/test")).unwrap().flatten();
        let locked = folders.filter(|entry| entry.path().join("package-lock.json").is_file());
        let mut found: Vec<_> =
            locked.map(|entry| format!("js/test/{}", entry.file_name().to_string_lossy())).collect();
        found.sort();
        assert_eq!(found, FOLDERS);
    }

    #[test]
    fn findings_are_named_and_a_refusal_is_no_clean_audit() {
        let clean = br#"{"auditReportVersion": 2, "vulnerabilities": {}}"#;
        assert!(vulnerable(clean).unwrap().is_empty());
        let bad = br#"{"auditReportVersion": 2, "vulnerabilities": {"left": {"severity": "high"}}}"#;
        assert_eq!(vulnerable(bad).unwrap(), ["left (high)"]);
        let refused = br#"{"message": "405 Method Not Allowed", "error": {"summary": "", "detail": ""}}"#;
        assert_eq!(vulnerable(refused).unwrap_err().to_string(), "405 Method Not Allowed");
        for nothing in [&b""[..], b"{}", b"[]"] {
            assert!(vulnerable(nothing).is_err());
        }
    }
}
