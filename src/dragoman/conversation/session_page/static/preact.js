// The vendored library is a plain script, so that the one-file export can hold it too.
export const { html, render, useState, useEffect, useLayoutEffect, useMemo, useRef } = globalThis.htmPreact;
