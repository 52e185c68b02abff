import { testFamilies } from './trend-families.ts';

// Three minutes.
testFamilies([180]);
