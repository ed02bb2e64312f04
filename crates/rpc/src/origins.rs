//! Which web pages may call.

use axum::{
    body::Body,
    http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header},
};

/// How long a browser may remember a preflight answer.
const PREFLIGHT_MAX_AGE_SECONDS: &str = "600";

/// The web origins whose pages may use this server from a browser. Programs send no `Origin` and are not concerned.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum AllowedOrigins {
    /// No web page (the default).
    #[default]
    None,
    /// Every web page, wherever it comes from.
    Any,
    /// These, each as browsers send it (`https://wallet.example`).
    List(Vec<String>),
}

impl AllowedOrigins {
    /// Whether a page of this origin may call.
    pub fn allows(&self, origin: &str) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::List(origins) => origins.iter().any(|allowed| allowed == origin),
        }
    }

    fn allowed_header(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(header::ORIGIN)?;
        if origin.to_str().is_ok_and(|origin| self.allows(origin)) { Some(origin.clone()) } else { None }
    }

    /// Browsers ask for no permission before they open a WebSocket, so the check is made here: a page that is not
    /// allowed is refused, while browser extensions and programs pass.
    pub(crate) fn refuses_websocket(&self, headers: &HeaderMap) -> bool {
        let Some(origin) = headers.get(header::ORIGIN) else { return false };
        match origin.to_str() {
            Ok(origin) => {
                let of_a_page =
                    origin == "null" || origin.starts_with("http://") || origin.starts_with("https://");
                of_a_page && !self.allows(origin)
            }
            Err(_) => true,
        }
    }

    /// The answer to a preflight request.
    pub(crate) fn preflight(&self, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
        if method != Method::OPTIONS {
            return None;
        }
        let mut response = Response::new(Body::empty());
        match self.allowed_header(headers) {
            Some(origin) => {
                *response.status_mut() = StatusCode::NO_CONTENT;
                let answer = response.headers_mut();
                answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
                answer.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
                answer.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static("content-type"));
                answer.insert(
                    header::ACCESS_CONTROL_MAX_AGE,
                    HeaderValue::from_static(PREFLIGHT_MAX_AGE_SECONDS),
                );
                answer.insert(header::VARY, HeaderValue::from_static("origin"));
            }
            None => *response.status_mut() = StatusCode::FORBIDDEN,
        }
        Some(response)
    }

    /// Lets an allowed page read the answer.
    pub(crate) fn mark(&self, asked: &HeaderMap, answer: &mut HeaderMap) {
        if let Some(origin) = self.allowed_header(asked) {
            answer.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
            answer.insert(header::VARY, HeaderValue::from_static("origin"));
        }
    }
}
