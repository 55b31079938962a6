import tseslint from 'typescript-eslint';

export default tseslint.config(
  { ignores: ['dist', 'node_modules', 'test/fixtures', 'coverage'] },
  tseslint.configs.strictTypeChecked,
  {
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      '@typescript-eslint/no-explicit-any': 'error',
      // Both together took a seventh of the time of lint and report nothing here: there are no enums (`erasableSyntaxOnly`), and nearly all classes have
      // private members, for which TypeScript itself refuses another object.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-class-instance-assignment': 'off',
      '@typescript-eslint/no-floating-promises': 'error',
      // Numbers and errors in messages are wanted; everything else must be turned into text on purpose.
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      // A boundary is asynchronous even where one implementation needs no await.
      '@typescript-eslint/require-await': 'off',
      // Loops that end by return or by a signal.
      '@typescript-eslint/no-unnecessary-condition': ['error', { allowConstantLoopConditions: true }],
      '@typescript-eslint/no-confusing-void-expression': ['error', { ignoreArrowShorthand: true }],
      // A `using` declaration acts at the end of its scope.
      '@typescript-eslint/no-unused-vars': ['error', { ignoreUsingDeclarations: true }],
    },
  },
  {
    files: ['src/**/*.ts'],
    rules: {
      '@typescript-eslint/no-restricted-imports': [
        'error',
        { paths: [{ name: 'node:http', allowTypeImports: true, message: 'Import node-http.ts, which states the reason.' }] },
      ],
    },
  },
  {
    files: ['src/**/*.ts', 'bench/**/*.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'ObjectExpression > SpreadElement > ObjectExpression',
          message: 'Write its members instead: TypeScript does not find a wrong member of a literal that is spread.',
        },
        {
          selector: 'Literal[value=/\\bRETURNING\\b/], TemplateElement[value.raw=/\\bRETURNING\\b/]',
          message: 'Read the row in the same transaction instead: better-sqlite3 hides the failed commit of a RETURNING that get() reads.',
        },
      ],
    },
  },
  // PostgreSQL reports a failed commit of a RETURNING.
  { files: ['src/fleet/**/*.ts'], rules: { 'no-restricted-syntax': 'off' } },
  // The script of the status page has a project with the types of a browser.
  {
    files: ['src/admin/page/static/*.js'],
    languageOptions: { parserOptions: { projectService: false, project: 'tsconfig.page.json' } },
    rules: { '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: false }] },
  },
  { files: ['bin/*.js', 'deploy/**/*.js', '*.config.js'], extends: [tseslint.configs.disableTypeChecked] },
);
