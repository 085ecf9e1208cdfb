//! WebGL2: paints the backend's own textures between draws, in the window's context.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use anyhow::Result;
use backend_webgl::{Options, Picture, Tile, Watched, WebGl, glow};

use crate::board::{Board, Places, SIDE};

/// Paints the result of a draw. If that fails, the tile is removed from the board.
fn paint(board: &mut Board, places: &mut Places<glow::Texture>, picture: &Picture, pass: &Watched<'_>) {
    if !board.begin(pass.kernel, pass.params) {
        return;
    }
    places.begin(pass.kernel);
    for (at, made) in pass.info.made.iter().enumerate() {
        let Some(texture) = pass.texture(at) else { continue };
        let Some((index, tile)) = board.add(pass.info, made, places.number(texture)) else { continue };
        let tile = Tile { area: tile.area, first: tile.first, stride: tile.stride };
        if pass.paint(at, picture, &tile).is_err() {
            board.tiles.truncate(index);
        }
    }
}

/// Opens a watched backend in the window's context. Returns it with the texture that passes are painted in, and the
/// board.
pub fn open(gl: Arc<glow::Context>) -> Result<(WebGl, glow::Texture, Rc<RefCell<Board>>)> {
    let backend = WebGl::new(gl, Options::default())?;
    let (picture, board) = (backend.picture(SIDE, SIDE)?, Rc::new(RefCell::<Board>::default()));
    let (texture, watched, places) = (picture.texture(), board.clone(), RefCell::new(Places::new()));
    backend.watch(move |pass| paint(&mut watched.borrow_mut(), &mut places.borrow_mut(), &picture, &pass));
    Ok((backend, texture, board))
}
