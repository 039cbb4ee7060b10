//! The server that documentation has its examples run against.

include!("../stand_in.in");
