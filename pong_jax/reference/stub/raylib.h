/* The few names that pong.h's drawing code mentions, so that it compiles without raylib.
   Nothing here draws: the shim never calls that code. */
#ifndef TWINENV_RAYLIB_STUB_H
#define TWINENV_RAYLIB_STUB_H
#include <stdbool.h>

typedef struct { unsigned char r, g, b, a; } Color;
typedef struct { float x, y; } Vector2;
typedef struct { float x, y, width, height; } Rectangle;
typedef struct { int id; } Texture2D;
typedef Texture2D Texture;

#define WHITE ((Color){255, 255, 255, 255})
enum { KEY_ESCAPE = 256 };

static inline void InitWindow(int w, int h, const char *title) { (void)w, (void)h, (void)title; }
static inline void CloseWindow(void) {}
static inline void SetTargetFPS(int fps) { (void)fps; }
static inline Texture2D LoadTexture(const char *file) { (void)file; return (Texture2D){0}; }
static inline void UnloadTexture(Texture2D texture) { (void)texture; }
static inline bool IsKeyDown(int key) { (void)key; return false; }
static inline bool IsKeyPressed(int key) { (void)key; return false; }
static inline void BeginDrawing(void) {}
static inline void EndDrawing(void) {}
static inline void ClearBackground(Color colour) { (void)colour; }
static inline void DrawFPS(int x, int y) { (void)x, (void)y; }
static inline void DrawRectangle(int x, int y, int w, int h, Color colour) {
    (void)x, (void)y, (void)w, (void)h, (void)colour;
}
static inline void DrawTexturePro(Texture2D t, Rectangle from, Rectangle to, Vector2 o, float turn, Color c) {
    (void)t, (void)from, (void)to, (void)o, (void)turn, (void)c;
}
static inline void DrawText(const char *text, int x, int y, int size, Color colour) {
    (void)text, (void)x, (void)y, (void)size, (void)colour;
}
static inline int MeasureText(const char *text, int size) { (void)text, (void)size; return 0; }
static inline const char *TextFormat(const char *text, ...) { return text; }

#endif
