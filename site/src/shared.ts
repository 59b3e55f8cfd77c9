// What `more.js` takes from the page instead of its own copy: build.mjs names these as its external modules.
import { Fragment, jsx, jsxs } from "preact/jsx-runtime";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

Object.assign(window, { __jsx: { Fragment, jsx, jsxs }, __hooks: { useEffect, useMemo, useRef, useState } });
