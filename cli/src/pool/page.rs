//! Web page of a coordinator: the state of the pool, as `pool.html` shows it.

use axum::Router;
use axum::http::header;
use axum::routing::get;

const HTML: &str = "text/html; charset=utf-8";
const CSS: &str = "text/css; charset=utf-8";
const JS: &str = "text/javascript; charset=utf-8";
/// Content security policy: nothing from other origins, and nothing inline.
const POLICY: &str =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'";

/// The files: path, content type and text.
const FILES: [(&str, &str, &str); 8] = [
    ("/", HTML, include_str!("page/index.html")),
    ("/page/page.css", CSS, include_str!("page/page.css")),
    ("/page/page.js", JS, include_str!("page/page.js")),
    ("/page/pool-picture.js", JS, include_str!("../../../web/pool-picture.js")),
    ("/page/dom.js", JS, include_str!("../../../web/dom.js")),
    ("/page/format.js", JS, include_str!("../../../web/format.js")),
    ("/page/base.css", CSS, include_str!("../../../web/base.css")),
    ("/page/pool.css", CSS, include_str!("../../../web/pool.css")),
];

/// Returns a router that serves the files.
pub fn router<S: Clone + Send + Sync + 'static>() -> Router<S> {
    FILES.into_iter().fold(Router::new(), |router, (path, kind, text)| {
        let headers = [(header::CONTENT_TYPE, kind), (header::CONTENT_SECURITY_POLICY, POLICY)];
        router.route(path, get(async move || (headers, text)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_all_that_it_loads() {
        let mut wanted = Vec::new();
        for (_, kind, text) in FILES {
            let quoted = text.split('"').skip(1).step_by(2);
            match kind {
                HTML => wanted.extend(quoted.filter(|it| it.starts_with('/')).map(String::from)),
                JS => wanted.extend(quoted.filter_map(|it| it.strip_prefix("./")).map(|it| format!("/page/{it}"))),
                _ => assert!(!text.contains("url(") && !text.contains("@import"), "{text}"),
            }
        }
        let missing: Vec<_> = wanted.iter().filter(|path| FILES.iter().all(|(at, ..)| at != path)).collect();
        assert!(wanted.len() > 6 && missing.is_empty(), "{missing:?} of {wanted:?}");
        let (_, _, page) = FILES[0];
        let ids = ["counts", "chains", "model", "work", "query", "pages"];
        assert!(ids.iter().all(|id| page.contains(&format!("id=\"{id}\""))), "{page}");
    }
}
