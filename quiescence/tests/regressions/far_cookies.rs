//! Cookies that no grace period of their domain will reach soon.
