//! `dist` with something added, for automated runs: to its page, to its workers, or to the headers.

use crate::web::dist;
use axum::Router;
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use std::fs;
use tower_http::services::ServeDir;

/// The package's workers, in `dist`.
const WORKERS: &[&str] = &[
    "anygpu/src/worker.js",
    "anygpu/src/worker-older.js",
    "anygpu/src/worker-threads.js",
    "anygpu/src/suite-worker.js",
    "anygpu/src/suite-worker-older.js",
    "anygpu/src/suite-worker-threads.js",
];

/// Makes the workers of an automated run report their errors. One line, so that line numbers stay the same.
const WORKER_PRELUDE: &str = "import '/test/errors.js'; ";

/// Makes the page report when it shows its first token. It comes before everything else, so that it misses nothing.
const PAGE_PRELUDE: &str = "<head>\n  <script type=\"module\" src=\"/test/first-token.js\"></script>";

/// Makes the page collect what its policy refuses, from the beginning.
const POLICY_PRELUDE: &str = "<head>\n  <script src=\"/test/violations.js\"></script>";

/// All of it.
pub fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    let policed = dist_with_workers("/policy")
        .route("/policy/index.html", get(|| page(POLICY_PRELUDE)))
        .layer(middleware::map_response(police));
    dist_with_workers("/below/a/path")
        .merge(policed)
        .route("/page/index.html", get(|| page(PAGE_PRELUDE)))
        .nest_service("/page", ServeDir::new(dist::folder()))
}

/// `dist` under a path, with workers that report their errors.
fn dist_with_workers<S: Clone + Send + Sync + 'static>(path: &str) -> Router<S> {
    let files = Router::new().nest_service(path, ServeDir::new(dist::folder()));
    WORKERS.iter().fold(files, |router, worker| router.route(&format!("{path}/{worker}"), get(|| self::worker(worker))))
}

/// Sends the page's policy as a header, which holds for workers, too.
async fn police(mut response: Response) -> Response {
    let page = fs::read_to_string(dist::folder().join("index.html")).unwrap_or_default();
    if let Some(policy) = policy(&page).and_then(|policy| HeaderValue::from_str(policy).ok()) {
        response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

/// The Content-Security-Policy that a page has in its head.
fn policy(page: &str) -> Option<&str> {
    let (_, rest) = page.split_once("http-equiv=\"Content-Security-Policy\" content=\"")?;
    Some(rest.split_once('"')?.0)
}

async fn worker(path: &'static str) -> Response {
    altered(path, "text/javascript", |source| format!("{WORKER_PRELUDE}{source}")).await
}

async fn page(prelude: &'static str) -> Response {
    altered("index.html", "text/html", |source| source.replacen("<head>", prelude, 1)).await
}

/// A file of `dist` with something added.
async fn altered(path: &str, kind: &'static str, alter: impl Fn(String) -> String) -> Response {
    match tokio::fs::read_to_string(dist::folder().join(path)).await {
        Ok(source) => ([(header::CONTENT_TYPE, kind)], alter(source)).into_response(),
        Err(error) => (StatusCode::NOT_FOUND, error.to_string()).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_policy_of_the_page_is_found() {
        let page = fs::read_to_string(crate::root().join("web/index.html")).unwrap();
        let policy = policy(&page).unwrap();
        assert!(policy.starts_with("default-src 'none'; ") && HeaderValue::from_str(policy).is_ok(), "{policy}");
        assert!(!policy.contains("unsafe-inline") && !policy.contains(" 'unsafe-eval'"), "{policy}");
    }
}
